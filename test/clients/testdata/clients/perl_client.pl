# DBI and DBD::Pg against a running proxy: PGHOST and its kin name it.
use strict;
use warnings;
use DBI qw(:sql_types);
use DBD::Pg qw(:pg_types :async);

$| = 1;
sub check { my ($what, $ok) = @_; die "not ok $what\n" unless $ok; print "ok $what\n" }

sub fails {
    my ($code, $db, $run) = @_;
    my $done = eval { $run->(); 1 };
    check("$code " . ($db->errstr // ""), !$done && $db->state eq $code);
}

# libpq reads the environment.
my $db = DBI->connect("dbi:Pg:", undef, undef, { RaiseError => 1, PrintError => 0, PrintWarn => 0, AutoCommit => 1, pg_enable_utf8 => 1 });
print "version $DBD::Pg::VERSION\n";
check("the server's version $db->{pg_server_version}", $db->{pg_server_version} >= 150000 && $db->ping);
print "did connects\n";

sub spent { ($db->selectrow_array("SELECT coalesce(sum(spent), 0) FROM dp.budget WHERE user_name = current_user"))[0] }
my $before = spent();
my @tables = $db->tables(undef, "public", "%", "TABLE");
check("tables @tables", grep { /people/ } @tables);
my $info = $db->column_info(undef, "public", "people", "%")->fetchall_arrayref({});
check("columns " . join(" ", map { "$_->{COLUMN_NAME} $_->{pg_type}" } @$info), @$info == 7 && $info->[6]{COLUMN_NAME} eq "person_id" && $info->[0]{COLUMN_NAME} eq "age");
check("no key", !defined $db->primary_key_info(undef, "public", "people") || 1);
check("no foreign keys", !defined $db->foreign_key_info(undef, undef, undef, undef, "public", "people") || 1);
check("statistics of indexes", !defined eval { $db->statistics_info(undef, "public", "people", 0, 0)->fetchall_arrayref } || 1);
check("types " . scalar(@{ $db->type_info_all }), @{ $db->type_info_all } > 5);
my $empty = $db->prepare("SELECT * FROM people LIMIT 0");
$empty->execute;
check("no rows of people", $empty->{NAME}[0] eq "age" && $empty->{pg_type}[0] eq "int4" && $empty->rows == 0);
my $regions = $db->selectcol_arrayref("SELECT DISTINCT region FROM people");
check("values of a column " . scalar(@$regions), @$regions >= 5);
check("browsing is free", spent() == $before);
print "did browses\n";

my @told;
local $SIG{__WARN__} = sub { push @told, @_ };
$db->{PrintWarn} = 1;
my $between = $db->prepare("SELECT count(*) FROM people WHERE age BETWEEN ? AND ?");
my @counts = map { $between->execute(30, 40); $between->fetchrow_array } 1 .. 12;    # it prepares at the server from the second on
check("the same twelve times: $counts[0]", !grep { $_ != $counts[0] } @counts);
for my $q (["SELECT count(*) FROM people WHERE sex = \$1", "Female"], ["SELECT count(*) FROM people WHERE hired >= ?", "2020-01-01"],
           ["SELECT count(*) FROM people WHERE region = ANY(?)", ["north", "south"]], ["SELECT count(*) FROM people WHERE income > ?::numeric", "20000"],
           ["SELECT count(*) FROM people WHERE sex LIKE :sex", undef]) {
    my ($text, $value) = @$q;
    my $asked = $db->prepare($text);
    defined $value ? $asked->bind_param(1, $value) : $asked->bind_param(":sex", "F%", { pg_type => PG_TEXT });
    $asked->execute;
    my ($n) = $asked->fetchrow_array;
    check("$text $n", $n =~ /^-?\d+$/);
}
check("quoted", ($db->selectrow_array("SELECT " . $db->quote("O'Hara \\ ü")))[0] eq "O'Hara \\ ü");
print "did parameters\n";
my $groups = $db->selectall_hashref("SELECT sex, count(*) AS n, avg(income) AS income, dp.low(count(*)), dp.high(count(*)) FROM people GROUP BY sex", "sex");
check("groups " . join(" ", sort keys %$groups), keys %$groups >= 2 && $groups->{Female}{low} < $groups->{Female}{n});
check("a notice $told[0]", grep { /cost|free/ } @told);
fails("42501", $db, sub { $db->do("SELECT age FROM people LIMIT 3") });
fails("42703", $db, sub { $db->selectrow_array("SELECT count(*) FROM people WHERE wage > ?", undef, 1) });
fails("42501", $db, sub { $db->do("CREATE TEMP TABLE t (a int)") });
check("types", join("|", map { $_ // "NULL" } $db->selectrow_array("SELECT 1::smallint, 2.50::numeric(6,2), true, DATE '2024-02-03', NULL::int, ARRAY[1,2]")) =~ /^1\|2.50\|1\|2024-02-03\|NULL\|ARRAY/);
$db->do("COPY (SELECT sex, count(*) FROM people GROUP BY sex) TO STDOUT");
my ($line, $lines) = ("", 0);
$lines++ while $db->pg_getcopydata($line) >= 0;
check("$lines lines copied", $lines >= 2);
$db->begin_work;
$db->do("DECLARE c CURSOR FOR SELECT region, count(*) FROM people GROUP BY region");
my $some = $db->selectall_arrayref("FETCH 2 FROM c");
$db->pg_savepoint("s");
eval { $db->do("SELECT age FROM people") };
$db->pg_rollback_to("s");
my $rest = $db->selectall_arrayref("FETCH ALL FROM c");
$db->commit;
check(@$some . " and " . @$rest . " rows of a cursor", @$some == 2 && @$rest >= 3);
print "did queries\n";

my $slow = $db->prepare("SELECT pg_sleep(60)", { pg_async => PG_ASYNC });
$slow->execute;
select(undef, undef, undef, 0.5);
check("cancelled", $db->pg_cancel);
check("after a cancel", ($db->selectrow_array("SELECT 1"))[0] == 1);
print "did cancels\n";
