#!/bin/bash
# Installs what Freshet's tests and demo need and this machine lacks: servers, load generators, a C compiler (for pg_query_go), and the
# folder of newer servers that sid.sh makes. What is there is left alone; no service is started and no database made.
#
#   install.sh [packages|sid]
#
# packages: Debian 12's own, and what making the folder takes; sid: the folder, with MySQL 9.7, PostgreSQL 18 and MariaDB 11.8; without a
# word, one after the other.
#
# Failing to make the sid folder is not an error: the tests that need it are skipped and counted.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${FRESHET_CACHE:-${HOME:-/root}/.cache/freshet}
sid_made() { [ -e "$cache/sid/.freshet-complete" ]; }

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

need() { # need FILE PACKAGE…: the packages are installed if the file is missing
	local file=$1
	shift
	if [ ! -e "$file" ]; then packages+=("$@"); fi
}

install_packages() {
	packages=()
	need /usr/sbin/mariadbd mariadb-server-core
	need /usr/bin/mariadb-install-db mariadb-server-core
	need /usr/bin/my_print_defaults mariadb-client-core
	need /usr/lib/postgresql/15/bin/postgres postgresql-15
	need /usr/lib/postgresql/15/bin/pgbench postgresql-15
	need /usr/lib/postgresql/15/bin/psql postgresql-client-15
	need /usr/bin/sysbench sysbench
	if ! command -v gcc >/dev/null; then packages+=(gcc libc6-dev); fi
	if ! sid_made; then
		need /usr/sbin/debootstrap debootstrap
		need /usr/bin/unshare util-linux
	fi
	if [ ${#packages[@]} = 0 ]; then return; fi
	echo "install.sh: installing ${packages[*]}" >&2
	# PostgreSQL's package would make a cluster and start it.
	no_cluster=/etc/postgresql-common/createcluster.d/freshet.conf
	as_root mkdir -p "$(dirname "$no_cluster")"
	echo 'create_main_cluster = false' | as_root tee "$no_cluster" >/dev/null
	trap 'as_root rm -f "$no_cluster"' EXIT
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update </dev/null >&2
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 --no-install-recommends install "${packages[@]}" </dev/null >&2
}

make_sid() {
	if sid_made; then return; fi
	echo "install.sh: making $cache/sid (newer servers; a minute or two)" >&2
	mkdir -p "$cache"
	log=$cache/sid.log
	if ! as_root bash "$here/sid.sh" "$cache/sid" </dev/null >"$log" 2>&1; then
		tail -n 20 "$log" >&2
		echo "install.sh: NO SID FOLDER: tests with MySQL 9.7 and PostgreSQL 18 will be skipped; see $log" >&2
	fi
}

for what in ${*:-packages sid}; do
	case $what in
	packages) install_packages ;;
	sid) make_sid ;;
	*) echo "install.sh: packages or sid, not $what" >&2 && exit 2 ;;
	esac
done
