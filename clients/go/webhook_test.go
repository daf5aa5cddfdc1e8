package detent

import (
	"encoding/base64"
	"errors"
	"net/http"
	"testing"
	"time"
)

// The example of Standard Webhooks' specification and libraries.
const (
	webhookKey  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	webhookBody = `{"test": 2432232314}`
	webhookTime = 1614265330
)

var otherKey = "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 24))

func webhookHeader(changes ...string) http.Header {
	header := http.Header{}
	header.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	header.Set("webhook-timestamp", "1614265330")
	header.Set("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	for i := 0; i < len(changes); i += 2 {
		header.Set(changes[i], changes[i+1])
	}
	return header
}

func verify(header http.Header, body string, seconds int64, keys ...string) (string, error) {
	return VerifyWebhook(keys, header, []byte(body), VerifyOptions{Now: time.Unix(seconds, 0)})
}

func TestThePublishedWebhookIsGenuine(t *testing.T) {
	id, err := verify(webhookHeader(), webhookBody, webhookTime, webhookKey)
	must(t, err)
	equal(t, id, "msg_p5jXN8AQM9LWM0D4loKWxJek")
	for _, difference := range []int64{-300, 300} {
		_, err = verify(webhookHeader(), webhookBody, webhookTime+difference, webhookKey)
		must(t, err)
	}
}

func TestOneMatchingKeyAndSignatureAreEnough(t *testing.T) {
	both := "v1,AAAA " + webhookHeader().Get("webhook-signature")
	header := webhookHeader("webhook-signature", both)
	_, err := verify(header, webhookBody, webhookTime, otherKey, webhookKey)
	must(t, err)
}

func TestAChangedWebhookIsRefused(t *testing.T) {
	cases := map[string]func() (string, error){
		"body": func() (string, error) {
			return verify(webhookHeader(), webhookBody+" ", webhookTime, webhookKey)
		},
		"too old": func() (string, error) {
			return verify(webhookHeader(), webhookBody, webhookTime+301, webhookKey)
		},
		"too new": func() (string, error) {
			return verify(webhookHeader(), webhookBody, webhookTime-301, webhookKey)
		},
		"now": func() (string, error) {
			return VerifyWebhook([]string{webhookKey}, webhookHeader(), []byte(webhookBody), VerifyOptions{})
		},
		"key": func() (string, error) {
			return verify(webhookHeader(), webhookBody, webhookTime, otherKey)
		},
		"no header": func() (string, error) { return verify(http.Header{}, "", 0, webhookKey) },
	}
	for _, change := range [][]string{{"webhook-id", "msg_2"}, {"webhook-timestamp", "now"},
		{"webhook-signature", "v1,"}, {"webhook-signature", "v2,é"}} {
		change := change
		cases[change[0]+change[1]] = func() (string, error) {
			return verify(webhookHeader(change...), webhookBody, webhookTime, webhookKey)
		}
	}
	for name, call := range cases {
		_, err := call()
		isTrue(t, errors.Is(err, ErrInvalidSignature), name)
	}
}

func TestAnInvalidKeyIsAnErrorOfTheCaller(t *testing.T) {
	for _, key := range []string{"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_%"} {
		_, err := verify(webhookHeader(), webhookBody, webhookTime, key)
		isTrue(t, errors.Is(err, InvalidArgument), key)
	}
}
