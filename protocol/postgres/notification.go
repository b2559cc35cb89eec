package postgres

// NotificationResponse is what another session sent with NOTIFY.
type NotificationResponse struct {
	ProcessID        uint32
	Channel, Payload []byte
}

// Decode reads the body.
func (m *NotificationResponse) Decode(body []byte) error {
	r := reader{rest: body}
	m.ProcessID = r.uint32()
	m.Channel = r.cstring()
	m.Payload = r.cstring()
	return r.end(TypeNotificationResponse)
}

// Append appends the whole message.
func (m *NotificationResponse) Append(dst []byte) []byte {
	start := len(dst)
	dst = appendUint32(begin(dst, TypeNotificationResponse), m.ProcessID)
	return finish(appendCString(appendCString(dst, m.Channel), m.Payload), start)
}
