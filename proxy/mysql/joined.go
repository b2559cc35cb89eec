package mysql

// Joined implements proxy.Handler.
func (h *handler) Joined(value []byte, ok bool) {
	if ok {
		h.answerKept(value)
		h.stage.answered = true
	}
}
