package threats

// console: the pages for browsers.
var console = []Row{
	{"T73", "another site's form, a planted session, a stranger at the console", "forms of strangers, of other sites, without a token or too long: 0 accepted, and not read; a planted session number, and one after the log-out: 0 let in; guesses there and on the wire wait for each other", []string{"console.TestForms", "console.TestLogIn", "console.TestWhoMayLogIn", "console.TestOneBrake", "console.TestManyLogIns", "console.TestTLS", "proxy.TestProve"}, ""},
	{"T74", "script in names, pages in frames", "a script in every name and text: 0 pages with it; 0 pages that may be framed or load anything", []string{"console.TestNothingIsRun", "console.TestGetsChangeNothing"}, ""},
	{"T75", "a purchase that nobody confirmed", "a price that rises between preview and purchase: 0 bought; several statements in a box: 0 run; dearer than dp.max_cost by any way: 0 charged", []string{"console.TestPrice", "test/answers.TestMaxCost"}, ""},
	{"T76", "a console that is kept busy", "connections, sessions, pages of a session and log-ins bounded; a session that ends while its statement runs ends that wait and nothing else", []string{"console.TestPagesAtOnce", "console.TestLogOutWhileItRuns", "console.TestSessionsAreBounded", "console.TestConnectionsAreBounded", "console.TestManyLogIns", "proxy.TestLostWithin"}, ""},
	{"T77", "an owner's page before others, or with a policy that harms", "0 of the owners' pages and forms for whoever the policy does not name; a proposed policy of 10 MB, of nonsense, or that unfolds without end: a clear error, 0 put in force", []string{"console.TestOwnersAlone", "console.TestProposedPolicy", "console.TestRevoke", "policy.TestChanges"}, "an owner who has a budget learns by what others buy: policy notes say that the cap bounds her, and not her budget"},
}
