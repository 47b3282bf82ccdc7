package threats

// protocol: frames, log-in, transport.
var protocol = []Row{
	{"T52", "lengths that lie", "200 connections × 5 bytes: at most 64 MiB more, closed", []string{"test/attacks.TestT52LengthField", "test/attacks.TestT52Edges"}, ""},
	{"T53", "frames out of place", "100,000 random sessions: 0 panics, 0 hangs", []string{"proxy.TestRandomFrames"}, "8 hours of fuzzing a target are left to make fuzz"},
	{"T54", "a second startup", "30 kinds of message in each phase of log-in: closed, 0 log-ins as another", []string{"proxy.TestUnexpectedMessages"}, ""},
	{"T55", "options at startup", "200 texts: answered, 0 forwarded", []string{"proxy.TestOptionsAtStartup", "proxy/login.TestOptionStrings"}, ""},
	{"T56", "plain bytes before TLS", "1,000 splits: 0 bytes read, closed", []string{"proxy.TestPlainBytesBeforeTLS"}, ""},
	{"T57", "TLS taken away", "plain log-ins from elsewhere refused; a database of the wrong authority refused", []string{"proxy.TestPlainFromElsewhere", "backend/postgres.TestLinkToAnImpostor"}, ""},
	{"T58", "SCRAM weakened", "12 cases: 12 right refusals; 1,000 tampered messages refused", []string{"proxy/login.TestTamperedExchange", "proxy.TestChannelBindingFlags", "test/clients.TestCertificateRenewed"}, ""},
	{"T59", "which users exist, guessing", "frames of equal length; timing AUC within 0.05; a removed user refused at once; many guesses at once are as slow as one after another", []string{"proxy.TestUnknownUsersLookLikeOthers", "proxy/login.TestMocksHaveTheUsersShapes", "proxy/login.TestGuessesAtOnce", "proxy/login.TestOtherNamesClearNothing", "proxy.TestPolicyChange"}, ""},
	{"T60", "cancel keys", "100,000 guesses: 0 cancels, equal replies", []string{"proxy.TestCancelGuesses"}, ""},
	{"T61", "slow and half-open clients", "2,000 slow sockets: a new log-in within 1 s", []string{"proxy.TestSlowClients", "proxy.TestReaderThatNeverReads"}, "1.5 s was the longest where 2,000 slow clients and other programs shared two cores: 30 of 694 log-ins needed a second try"},
	{"T62", "a hostile database", "40 scripts: 0 panics, refused or answered by rule 5, the charge kept", []string{"backend/postgres.TestHostileDatabase"}, ""},
	{"T63", "sessions mixed up", "64 users, 100,000 queries with faults: 0 answers to another user, 0 leaks", []string{"test/durability.TestSoak"}, "at full length the statements come in bursts over an hour; what was bought stays in memory"},
}
