package login

import (
	"errors"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/xdg-go/scram"

	"github.com/dpproxy/dpproxy/policy"
)

// errOtherwise says that a name is asked for something that is no password.
var errOtherwise = errors.New("this name does not log in with a password")

// Claim is the client's side of Authenticate for who has a name and a password and no driver of her own, such as a form
// in a browser: of carol's verifier it does SCRAM-SHA-256, to a directory's user it gives the password as it is. It
// returns once everything is sent that can be; whether it was right, Authenticate says.
func Claim(front *pgproto3.Frontend, password string) error {
	var talk *scram.ClientConversation
	for {
		msg, err := front.Receive()
		if err != nil {
			return ErrSilent
		}
		switch m := msg.(type) {
		case *pgproto3.AuthenticationCleartextPassword:
			front.Send(&pgproto3.PasswordMessage{Password: password})
		case *pgproto3.AuthenticationSASL:
			client, err := scram.SHA256.NewClientUnprepped("", policy.Prepared(password), "") // the name stands in the start-up packet
			if err != nil {
				return err
			}
			talk = client.NewConversation()
			first, err := talk.Step("")
			if err != nil || len(m.AuthMechanisms) == 0 || m.AuthMechanisms[len(m.AuthMechanisms)-1] != mechanism {
				return errOtherwise
			}
			front.Send(&pgproto3.SASLInitialResponse{AuthMechanism: mechanism, Data: []byte(first)})
		case *pgproto3.AuthenticationSASLContinue:
			if talk == nil {
				return errOtherwise
			}
			next, err := talk.Step(string(m.Data))
			if err != nil {
				return err
			}
			front.Send(&pgproto3.SASLResponse{Data: []byte(next)})
		default:
			return nil // an error, or the last word
		}
		if front.Flush() != nil {
			return ErrSilent
		}
	}
}
