package mysql

import "crypto/subtle"

// VerifyScramble checks a client's answer to a nonce against a password that
// is known in plain. ok is false for an unknown plugin. The time it takes does
// not depend on where the answer differs.
func VerifyScramble(plugin string, nonce, answer []byte, password string) bool {
	var want []byte
	switch plugin {
	case PluginNative:
		want = ScrambleNative(nonce, password)
	case PluginCachingSHA2:
		want = ScrambleSHA2(nonce, password)
		// Some clients send an empty password as the one zero byte that would
		// end it.
		if password == "" && len(answer) == 1 && answer[0] == 0 {
			return true
		}
	default:
		return false
	}
	return subtle.ConstantTimeCompare(want, answer) == 1
}

// FastAuthOK is caching_sha2_password's word that the scramble was right; the
// OK packet follows it.
var FastAuthOK = []byte{0x03}
