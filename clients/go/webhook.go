package detent

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const defaultTolerance = 5 * time.Minute

// ErrInvalidSignature is the error of a webhook that is not genuine, or too old. Answer it with 4xx
// and ignore it. Use errors.Is.
var ErrInvalidSignature = errors.New("detent: invalid webhook signature")

// VerifyOptions are the options of VerifyWebhook. The zero value has the defaults.
type VerifyOptions struct {
	// Tolerance is the largest difference between the timestamp and Now; 0: 5 minutes.
	Tolerance time.Duration
	// Now is the current time; zero: the system's time.
	Now time.Time
}

// VerifyWebhook checks that a webhook is from your server, complete and recent, by the rules of
// Standard Webhooks, version 1. It returns the webhook's id, which is the same at every attempt.
//
// A key is "whsec_…"; the signature of one key is enough. The header is that of the request. The
// body has the received bytes: JSON that was parsed and written again has other bytes.
//
// The error is ErrInvalidSignature, or that of an invalid key.
func VerifyWebhook(
	keys []string, header http.Header, body []byte, options VerifyOptions,
) (string, error) {
	secrets, err := secretsOf(keys)
	if err != nil {
		return "", err
	}
	id, sent := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	signatures := strings.Split(header.Get("Webhook-Signature"), " ")
	seconds, err := strconv.ParseInt(sent, 10, 64)
	if id == "" || err != nil {
		return "", refused("Webhook-Id or Webhook-Timestamp is missing or malformed")
	}
	if !isRecent(time.Unix(seconds, 0), options) {
		return "", refused("Webhook-Timestamp differs from the current time by more than the tolerance")
	}
	for _, secret := range secrets {
		signer := hmac.New(sha256.New, secret)
		fmt.Fprintf(signer, "%s.%s.%s", id, sent, body)
		expected := []byte("v1," + base64.StdEncoding.EncodeToString(signer.Sum(nil)))
		for _, signature := range signatures {
			if hmac.Equal(expected, []byte(signature)) {
				return id, nil
			}
		}
	}
	return "", refused("no signature matches one of the keys")
}

func isRecent(sent time.Time, options VerifyOptions) bool {
	tolerance, now := options.Tolerance, options.Now
	if tolerance == 0 {
		tolerance = defaultTolerance
	}
	if now.IsZero() {
		now = time.Now()
	}
	return !sent.Before(now.Add(-tolerance)) && !sent.After(now.Add(tolerance))
}

func refused(reason string) error { return fmt.Errorf("%w: %s", ErrInvalidSignature, reason) }

// secretsOf decodes keys. The text of its error does not have a key.
func secretsOf(keys []string) ([][]byte, error) {
	secrets := make([][]byte, len(keys))
	for i, key := range keys {
		text := strings.TrimPrefix(key, "whsec_")
		secret, err := base64.StdEncoding.DecodeString(text)
		if err != nil || text == key {
			return nil, invalid(`a key must be "whsec_" and base64`)
		}
		secrets[i] = secret
	}
	return secrets, nil
}
