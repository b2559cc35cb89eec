package canon

import "unicode/utf8"

// foldGroups are the letters outside ASCII that are folded to another one: to
// lower case and to the letter without its marks. Some collations keep some of
// them apart; a fold that is coarser than the collation costs needless misses
// only. What a collation may hold to be equal to something else (ß, æ,
// ligatures, what is not a letter) is in no group, and refused.
var foldGroups = []struct {
	to   rune
	from string
}{
	{'a', "ÀÁÂÃÄÅàáâãäåĀāĂăĄąǍǎǞǟǠǡǺǻȀȁȂȃȦȧḀḁẠạẢảẤấẦầẨẩẪẫẬậẮắẰằẲẳẴẵẶặ"},
	{'b', "ḂḃḄḅḆḇ"},
	{'c', "ÇçĆćĈĉĊċČčḈḉ"},
	{'d', "ĎďḊḋḌḍḎḏḐḑḒḓđĐðÐ"},
	{'e', "ÈÉÊËèéêëĒēĔĕĖėĘęĚěȄȅȆȇȨȩḔḕḖḗḘḙḚḛḜḝẸẹẺẻẼẽẾếỀềỂểỄễỆệ"},
	{'f', "Ḟḟ"},
	{'g', "ĜĝĞğĠġĢģǦǧǴǵḠḡ"},
	{'h', "ĤĥȞȟḢḣḤḥḦḧḨḩḪḫẖħĦ"},
	{'i', "ÌÍÎÏìíîïĨĩĪīĬĭĮįİǏǐȈȉȊȋḬḭḮḯỈỉỊịı"},
	{'j', "Ĵĵǰ"},
	{'k', "ĶķǨǩḰḱḲḳḴḵ"},
	{'l', "ĹĺĻļĽľḶḷḸḹḺḻḼḽłŁ"},
	{'m', "ḾḿṀṁṂṃ"},
	{'n', "ÑñŃńŅņŇňǸǹṄṅṆṇṈṉṊṋ"},
	{'o', "ÒÓÔÕÖòóôõöŌōŎŏŐőƠơǑǒǪǫǬǭȌȍȎȏȪȫȬȭȮȯȰȱṌṍṎṏṐṑṒṓỌọỎỏỐốỒồỔổỖỗỘộỚớỜờỞởỠỡỢợøØ"},
	{'p', "ṔṕṖṗ"},
	{'r', "ŔŕŖŗŘřȐȑȒȓṘṙṚṛṜṝṞṟ"},
	{'s', "ŚśŜŝŞşŠšȘșṠṡṢṣṤṥṦṧṨṩ"},
	{'t', "ŢţŤťȚțṪṫṬṭṮṯṰṱẗŧŦ"},
	{'u', "ÙÚÛÜùúûüŨũŪūŬŭŮůŰűŲųƯưǓǔǕǖǗǘǙǚǛǜȔȕȖȗṲṳṴṵṶṷṸṹṺṻỤụỦủỨứỪừỬửỮữỰự"},
	{'v', "ṼṽṾṿ"},
	{'w', "ŴŵẀẁẂẃẄẅẆẇẈẉẘ"},
	{'x', "ẊẋẌẍ"},
	{'y', "ÝýÿŶŷŸȲȳẎẏẙỲỳỴỵỶỷỸỹ"},
	{'z', "ŹźŻżŽžẐẑẒẓẔẕ"},
	{'α', "ΆΑά"},
	{'β', "Β"},
	{'γ', "Γ"},
	{'δ', "Δ"},
	{'ε', "ΈΕέ"},
	{'ζ', "Ζ"},
	{'η', "ΉΗή"},
	{'θ', "Θ"},
	{'ι', "ΊΐΙΪίϊ"},
	{'κ', "Κ"},
	{'λ', "Λ"},
	{'μ', "Μ"},
	{'ν', "Ν"},
	{'ξ', "Ξ"},
	{'ο', "ΌΟό"},
	{'π', "Π"},
	{'ρ', "Ρ"},
	{'σ', "Σς"},
	{'τ', "Τ"},
	{'υ', "ΎΥΫΰϋύ"},
	{'φ', "Φ"},
	{'χ', "Χ"},
	{'ψ', "Ψ"},
	{'ω', "ΏΩώ"},
	{'а', "А"},
	{'б', "Б"},
	{'в', "В"},
	{'г', "ЃГѓҐґ"},
	{'д', "Д"},
	{'е', "ЀЁЕѐё"},
	{'ж', "Ж"},
	{'з', "З"},
	{'и', "ЍИЙйѝ"},
	{'к', "ЌКќ"},
	{'л', "Л"},
	{'м', "М"},
	{'н', "Н"},
	{'о', "О"},
	{'п', "П"},
	{'р', "Р"},
	{'с', "С"},
	{'т', "Т"},
	{'у', "ЎУў"},
	{'ф', "Ф"},
	{'х', "Х"},
	{'ц', "Ц"},
	{'ч', "Ч"},
	{'ш', "Ш"},
	{'щ', "Щ"},
	{'ъ', "Ъ"},
	{'ы', "Ы"},
	{'ь', "Ь"},
	{'э', "Э"},
	{'ю', "Ю"},
	{'я', "Я"},
	{'ђ', "Ђ"},
	{'є', "Є"},
	{'ѕ', "Ѕ"},
	{'і', "ІЇї"},
	{'ј', "Ј"},
	{'љ', "Љ"},
	{'њ', "Њ"},
	{'ћ', "Ћ"},
	{'џ', "Џ"},
}

// foldKana are the letters from U+3041 on, full-size and without voicing marks;
// katakana lie kanaApart further on, in the same order.
const (
	foldKana  = "ああいいううええおおかかききくくけけここささししすすせせそそたたちちつつつててととなにぬねのはははひひひふふふへへへほほほまみむめもややゆゆよよらりるれろわわゐゑをんうかけ"
	hiragana  = 0x3041
	kanaApart = 0x60
)

// foldTable[r] is what r is folded to, 0 if it is refused, for r below its length.
var foldTable = makeFoldTable()

func makeFoldTable() (t [0x3100]uint16) {
	for c := rune(0x20); c < 0x7F; c++ {
		t[c] = uint16(c)
	}
	for c := 'A'; c <= 'Z'; c++ {
		t[c] = uint16(c + 'a' - 'A')
	}
	for _, g := range foldGroups {
		t[g.to] = uint16(g.to)
		for _, r := range g.from {
			t[r] = uint16(g.to)
		}
	}
	at := hiragana
	for _, r := range foldKana {
		t[at], t[at+kanaApart] = uint16(r), uint16(r)
		at++
	}
	return t
}

// foldRune folds one character. Han ideographs and Hangul syllables stand for
// themselves.
func foldRune(r rune) (rune, bool) {
	if int(r) < len(foldTable) {
		to := rune(foldTable[r])
		return to, to != 0
	}
	return r, r >= 0x4E00 && r <= 0x9FA5 || r >= 0xAC00 && r <= 0xD7A3
}

// foldUTF8 is foldASCII for more letters.
func foldUTF8(dst, text []byte) ([]byte, bool) {
	for n := len(text); n > 0 && text[n-1] == ' '; n-- {
		text = text[:n-1]
	}
	start := len(dst)
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[i:])
		}
		to, ok := foldRune(r)
		if !ok {
			return dst[:start], false
		}
		dst = utf8.AppendRune(dst, to)
		i += size
	}
	return dst, true
}
