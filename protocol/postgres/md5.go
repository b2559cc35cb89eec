package postgres

import (
	"crypto/md5"
	"crypto/subtle"
	"encoding/hex"
)

// MD5Password is what a client answers to AuthMD5: "md5" and the hex digest of
// (the hex digest of password and user) and the salt.
func MD5Password(user, password string, salt [4]byte) string {
	inner := md5.Sum([]byte(password + user))
	outer := md5.Sum(append([]byte(hex.EncodeToString(inner[:])), salt[:]...))
	return "md5" + hex.EncodeToString(outer[:])
}

// CheckMD5 compares an answer with the right one, in constant time.
func CheckMD5(answer []byte, user, password string, salt [4]byte) error {
	return CheckCleartext(answer, MD5Password(user, password, salt))
}

// CheckCleartext compares passwords in constant time.
func CheckCleartext(answer []byte, password string) error {
	if subtle.ConstantTimeCompare(answer, []byte(password)) != 1 {
		return ErrAuthFailed
	}
	return nil
}
