package login

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/xdg-go/scram"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

const (
	mechanism     = "SCRAM-SHA-256"
	mechanismPlus = "SCRAM-SHA-256-PLUS"
	saltBytes     = 16 // of the mocks where there is no user
	// leastIterations are those of the mocks there.
	leastIterations = 4096
)

// StateWrongPassword is the SQLSTATE of an exchange that failed by the password, or by the name.
const StateWrongPassword = "28P01"

// credentials reads a verifier as PostgreSQL writes it: SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey.
func credentials(verifier string) (scram.StoredCredentials, error) {
	bad := fmt.Errorf("not a %s verifier", mechanism)
	parts := strings.Split(verifier, "$")
	if len(parts) != 3 || parts[0] != mechanism {
		return scram.StoredCredentials{}, bad
	}
	count, salt64, ok1 := strings.Cut(parts[1], ":")
	stored64, server64, ok2 := strings.Cut(parts[2], ":")
	iterations, err := strconv.Atoi(count)
	if !ok1 || !ok2 || err != nil || iterations < 1 {
		return scram.StoredCredentials{}, bad
	}
	salt, err1 := base64.StdEncoding.DecodeString(salt64)
	stored, err2 := base64.StdEncoding.DecodeString(stored64)
	server, err3 := base64.StdEncoding.DecodeString(server64)
	if err1 != nil || err2 != nil || err3 != nil || len(stored) != sha256.Size || len(server) != sha256.Size {
		return scram.StoredCredentials{}, bad
	}
	return scram.StoredCredentials{
		KeyFactors: scram.KeyFactors{Salt: string(salt), Iters: iterations}, StoredKey: stored, ServerKey: server,
	}, nil
}

// Passwords runs the password exchange. A user who does not exist gets an exchange like any other, with a salt that
// a secret of ours fixes for each name, so that asking twice tells nothing.
type Passwords struct {
	Secret []byte
	Policy func() *policy.Policy

	verifiers atomic.Pointer[verifiers]
}

// verifiers are those of a policy, read once, so that a name which is found takes no longer than another.
type verifiers struct {
	policy *policy.Policy
	users  map[string]scram.StoredCredentials
	others map[string]policy.User // who logs in by something else than a password of ours
	shapes []shape                // in one order whatever the order of the users
	all    int                    // users in all shapes

	directory *directory // nil: none
	issuer    *issuer    // nil: none
}

// shape is what an exchange shows of a user before any proof, but for the salt's bytes, and how many users have it.
type shape struct {
	method                  policy.LoginMethod
	iterations, salt, users int
}

// inForce returns the verifiers of the policy in force.
func (a *Passwords) inForce() *verifiers {
	p := a.Policy()
	if v := a.verifiers.Load(); v != nil && v.policy == p {
		return v
	}
	v := &verifiers{policy: p, users: map[string]scram.StoredCredentials{}, others: map[string]policy.User{}}
	v.directory, v.issuer = newDirectory(p.Server.LDAP), newIssuer(p.Server.OIDC)
	counts := map[shape]int{}
	for _, u := range p.Users {
		c, err := credentials(u.Verifier)
		switch {
		case u.Disabled: // like a name that does not exist
		case u.Login != policy.ByPassword:
			v.others[u.Name] = u
			counts[shape{method: u.Login}]++
		case err == nil:
			v.users[u.Name] = c
			counts[shape{iterations: c.Iters, salt: len(c.Salt)}]++
		}
	}
	for s, users := range counts {
		s.users = users
		v.shapes = append(v.shapes, s)
		v.all += users
	}
	slices.SortFunc(v.shapes, func(a, b shape) int {
		return cmp.Or(cmp.Compare(a.method, b.method), cmp.Compare(a.iterations, b.iterations), cmp.Compare(a.salt, b.salt))
	})
	a.verifiers.Store(v)
	return v
}

// lookup returns the credentials of a user, and whether she exists.
func (a *Passwords) lookup(name string) (scram.StoredCredentials, bool) {
	v := a.inForce()
	mock := a.mock(v, name) // made in either case, to take the same time
	if c, known := v.users[name]; known {
		return c, true
	}
	return mock, false
}

// mock makes up credentials for a name that does not exist. Names that do not exist have each shape as often as users
// have it, so that a shape tells nothing of whether a name exists. Where the users' shapes change, that of a few such
// names does, and their salts with it: what is seen is what a user's new password would show.
func (a *Passwords) mock(v *verifiers, name string) scram.StoredCredentials {
	s := a.mockShape(v, name)
	var salt []byte
	for block := 0; len(salt) < s.salt; block++ {
		salt = append(salt, a.keyed(fmt.Sprintf("salt %d %d %d", s.iterations, s.salt, block), name)...)
	}
	return scram.StoredCredentials{
		KeyFactors: scram.KeyFactors{Salt: string(salt[:s.salt]), Iters: s.iterations},
		StoredKey:  a.keyed("stored", name), ServerKey: a.keyed("server", name),
	}
}

// mockShape is that of a name that does not exist.
func (a *Passwords) mockShape(v *verifiers, name string) shape {
	s := shape{iterations: leastIterations, salt: saltBytes}
	if v.all > 0 {
		place := int(uint64(binary.BigEndian.Uint32(a.keyed("iterations", name))) * uint64(v.all) >> 32)
		for _, s = range v.shapes {
			if place -= s.users; place < 0 {
				break
			}
		}
	}
	return s
}

func (a *Passwords) keyed(purpose, name string) []byte {
	m := hmac.New(sha256.New, a.Secret)
	m.Write([]byte(purpose + "\x00" + name))
	return m.Sum(nil)
}

// Turn makes a guess when its turn has come (Brake.Guess).
type Turn func(right func() bool) (bool, error)

// Exchange authenticates the user of a start-up packet on that connection. Any message but the ones expected ends it.
func (a *Passwords) Exchange(back *pgproto3.Backend, user string, binding scram.ChannelBinding, turn Turn) error {
	first, err := asked(back, &pgproto3.AuthenticationSASL{AuthMechanisms: offered(binding)}, pgproto3.AuthTypeSASL)
	if err != nil {
		return err
	}
	initial, ok := first.(*pgproto3.SASLInitialResponse)
	if !ok {
		return pgerror.New("08P01", "expected a SASL response").Fatal()
	}
	plus := initial.AuthMechanism == mechanismPlus
	if initial.AuthMechanism != mechanism && !(plus && binding.IsSupported()) {
		return pgerror.New("08P01", "client selected an invalid SASL authentication mechanism").Fatal()
	}
	if bound := strings.HasPrefix(string(initial.Data), "p="); bound != plus {
		return pgerror.New("08P01", "malformed SCRAM message: channel binding flag and mechanism disagree").Fatal()
	}
	talk, known, err := a.conversation(user, plus, binding)
	if err != nil {
		return err
	}
	challenge, err := talk.Step(string(initial.Data))
	if err != nil || talk.AuthzID() != "" {
		return rejected(user)
	}
	second, err := asked(back, &pgproto3.AuthenticationSASLContinue{Data: []byte(challenge)},
		pgproto3.AuthTypeSASLContinue)
	if err != nil {
		return err
	}
	response, ok := second.(*pgproto3.SASLResponse)
	if !ok {
		return pgerror.New("08P01", "expected a SASL response").Fatal()
	}
	var final string
	right, err := turn(func() bool {
		var wrong error
		final, wrong = talk.Step(string(response.Data))
		return wrong == nil && talk.Valid() && known
	})
	switch {
	case err != nil:
		return pgerror.New("53300", err.Error()).WithHint("Try again in a few seconds.").Fatal()
	case !right:
		return rejected(user)
	}
	back.Send(&pgproto3.AuthenticationSASLFinal{Data: []byte(final)})
	return nil
}

func (a *Passwords) conversation(user string, plus bool, binding scram.ChannelBinding) (*scram.ServerConversation, bool, error) {
	stored, known := a.lookup(user)
	// The name inside the exchange is ignored: clients send anything there.
	server, err := scram.SHA256.NewServer(func(string) (scram.StoredCredentials, error) { return stored, nil })
	if err != nil {
		return nil, false, pgerror.New("XX000", pgerror.TextInternal).Fatal()
	}
	if plus {
		return server.NewConversationWithChannelBindingRequired(binding), known, nil
	}
	return server.NewConversationWithChannelBinding(binding), known, nil
}

func offered(binding scram.ChannelBinding) []string {
	if binding.IsSupported() {
		return []string{mechanismPlus, mechanism}
	}
	return []string{mechanism}
}

// asked sends a message and returns the client's, of that kind.
func asked(back *pgproto3.Backend, m pgproto3.BackendMessage, kind uint32) (pgproto3.FrontendMessage, error) {
	back.Send(m)
	if err := back.Flush(); err != nil {
		return nil, ErrSilent
	}
	if err := back.SetAuthType(kind); err != nil {
		return nil, err
	}
	msg, err := back.Receive()
	if err != nil {
		return nil, ErrSilent
	}
	return msg, nil
}

func rejected(user string) error {
	return pgerror.New(StateWrongPassword, fmt.Sprintf("password authentication failed for user %q", user)).Fatal()
}

// ChannelBinding is what ties a password exchange to the server's certificate. It is empty where there is no TLS, and
// for certificates whose signature names no hash of its own (Ed25519, RSA-PSS), as clients disagree about those.
func ChannelBinding(config *tls.Config, secure bool) scram.ChannelBinding {
	if !secure || config == nil || len(config.Certificates) != 1 || config.GetCertificate != nil || config.GetConfigForClient != nil {
		return scram.ChannelBinding{}
	}
	leaf := config.Certificates[0].Leaf
	if leaf == nil {
		var err error
		if leaf, err = x509.ParseCertificate(config.Certificates[0].Certificate[0]); err != nil {
			return scram.ChannelBinding{}
		}
	}
	switch leaf.SignatureAlgorithm {
	case x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS, x509.PureEd25519:
		return scram.ChannelBinding{}
	}
	binding, err := scram.NewTLSServerEndpointBinding(&tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}})
	if err != nil {
		return scram.ChannelBinding{}
	}
	return binding
}
