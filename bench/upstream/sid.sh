#!/bin/bash
# Makes the folder of newer servers (MySQL 9.7, PostgreSQL 18, MariaDB 11.8, pgbouncer): a minimal Debian sid, outside the repository.
#
#   sid.sh FOLDER
#
# FOLDER appears whole or not at all: everything happens in FOLDER.part, which is renamed at the end. Runs at the same time wait for one
# another on FOLDER.lock, and the later ones find the work done. Mounts are made in a mount namespace of this script's own, so none outlives
# it. The mirror is the one that this machine's apt is set up with.
set -euo pipefail

folder=${1:?usage: sid.sh FOLDER}
part=$folder.part
servers=(mysql-server-core postgresql-18 pgbouncer)

if [ -e "$folder/.freshet-complete" ]; then exit 0; fi
if [ "$(id -u)" != 0 ]; then echo "sid.sh: needs root, for debootstrap and chroot" >&2; exit 1; fi
if [ "${FRESHET_SID_NAMESPACE:-}" != 1 ]; then
	mkdir -p "$(dirname "$folder")"
	exec env FRESHET_SID_NAMESPACE=1 flock "$folder.lock" unshare --mount --propagation private bash "$0" "$folder"
fi
if [ -e "$folder/.freshet-complete" ]; then exit 0; fi

in_chroot() { chroot "$part" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"; }

# The first Debian archive that apt knows; security and other vendors' archives have another label.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' | head -n 1)
if [ -z "$mirror" ]; then echo "sid.sh: apt on this machine names no Debian archive; run apt-get update" >&2; exit 1; fi

rm -rf "$part"
debootstrap --variant=minbase sid "$part" "$mirror"

# No service starts and no database is made while packages are configured.
printf '#!/bin/sh\nexit 101\n' >"$part/usr/sbin/policy-rc.d"
chmod 755 "$part/usr/sbin/policy-rc.d"
mkdir -p "$part/etc/postgresql-common"
echo 'create_main_cluster = false' >"$part/etc/postgresql-common/createcluster.conf"
cp /etc/resolv.conf "$part/etc/resolv.conf"
mount -t proc proc "$part/proc"

# A mirror may lag behind its Release file's date; the signature is checked all the same.
echo 'Acquire::Check-Valid-Until "false";' >"$part/etc/apt/apt.conf.d/90freshet"
in_chroot apt-get -q update
in_chroot apt-get -q -y -o Dpkg::Options::=--force-confold --no-install-recommends install "${servers[@]}"

# MariaDB's server package may not be installed beside MySQL's, so it is only unpacked, into a folder of its own.
in_chroot sh -c 'mkdir -p /opt/mariadb && cd /opt/mariadb && apt-get -q download mariadb-server-core mariadb-client-core && for deb in *.deb; do dpkg -x "$deb" .; done && rm -f *.deb' ||
	echo "sid.sh: no MariaDB from sid; the rest goes on" >&2

in_chroot apt-get -q clean
umount "$part/proc"
rm -rf "$part"/var/lib/apt/lists/*
chmod 1777 "$part/tmp"
touch "$part/.freshet-complete"
rm -rf "$folder"
mv "$part" "$folder"
