<?php
// PHP's pgsql and PDO against a running proxy: PGHOST and its kin name it.
error_reporting(E_ALL);
set_error_handler(function ($level, $text) { throw new ErrorException($text); });

function check($what, $ok) {
    if (!$ok) {
        fwrite(STDERR, "not ok $what\n");
        exit(1);
    }
    echo "ok $what\n";
}

$db = pg_connect("");
echo "version ", PHP_VERSION, "\n";
check("the server's version " . pg_version($db)["server"], (int) pg_version($db)["server"] >= 15 && pg_ping($db));
$pdo = new PDO("pgsql:", getenv("PGUSER"), getenv("PGPASSWORD"), [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
check("PDO's server " . $pdo->getAttribute(PDO::ATTR_SERVER_VERSION), str_starts_with($pdo->getAttribute(PDO::ATTR_SERVER_VERSION), "15"));
echo "did connects\n";

$spent = fn() => pg_fetch_result(pg_query($db, "SELECT coalesce(sum(spent), 0) FROM dp.budget WHERE user_name = current_user"), 0, 0);
$before = $spent();
$meta = pg_meta_data($db, "people");
check("columns " . implode(" ", array_keys($meta)), $meta["age"]["type"] === "int4" && $meta["person_id"]["type"] === "int8" && count($meta) === 7);
$none = pg_query($db, "SELECT * FROM people LIMIT 0");
check("no rows of people", pg_field_name($none, 0) === "age" && pg_field_type($none, 0) === "int4" && pg_field_table($none, 0) === "people" && pg_num_rows($none) === 0);
$asked = $pdo->query("SELECT sex, count(*) FROM people WHERE 1 = 0 GROUP BY sex");
check("PDO's columns " . json_encode($asked->getColumnMeta(0)), $asked->getColumnMeta(0)["native_type"] === "text" && $asked->getColumnMeta(0)["table"] === "people" && $asked->getColumnMeta(1)["native_type"] === "int8");
check("values of a column", pg_num_rows(pg_query($db, "SELECT DISTINCT region FROM people")) >= 5);
check("browsing is free", $spent() === $before);
echo "did browses\n";

$first = pg_fetch_result(pg_query_params($db, 'SELECT count(*) FROM people WHERE age BETWEEN $1 AND $2', [30, 40]), 0, 0);
check("a notice " . pg_last_notice($db), str_contains(pg_last_notice($db), "cost") || str_contains(pg_last_notice($db), "free"));
pg_prepare($db, "between", 'SELECT count(*) FROM people WHERE age BETWEEN $1 AND $2');
check("prepared: $first", pg_fetch_result(pg_execute($db, "between", [30, 40]), 0, 0) === $first);
foreach ([true, false] as $emulated) {
    $pdo->setAttribute(PDO::ATTR_EMULATE_PREPARES, $emulated);
    foreach ([["SELECT count(*) FROM people WHERE age BETWEEN ? AND ?", [30, 40]], ["SELECT count(*) FROM people WHERE sex = :sex", ["sex" => "Female"]],
              ["SELECT count(*) FROM people WHERE hired >= ?::date", ["2020-01-01"]], ["SELECT count(*) FROM people WHERE region = ANY(?)", ["{north,south}"]],
              ["SELECT count(*) FROM people WHERE income > ?", ["20000"]]] as [$text, $values]) {
        $asked = $pdo->prepare($text);
        $asked->execute($values);
        $n = $asked->fetchColumn();
        check("$text $n", is_int($n) && (!str_contains($text, "BETWEEN") || (string) $n === $first));
    }
}
check("quoted", $pdo->query("SELECT " . $pdo->quote("O'Hara \\ ü"))->fetchColumn() === "O'Hara \\ ü" && pg_fetch_result(pg_query($db, "SELECT " . pg_escape_literal($db, "a'b")), 0, 0) === "a'b");
echo "did parameters\n";
$groups = $pdo->query("SELECT sex, count(*) AS n, avg(income) AS income, dp.low(count(*)), dp.high(count(*)) FROM people GROUP BY sex")->fetchAll(PDO::FETCH_ASSOC | PDO::FETCH_UNIQUE);
check("groups " . json_encode($groups), count($groups) >= 2 && $groups["Female"]["low"] < $groups["Female"]["n"]);
foreach (["42501" => "SELECT age FROM people LIMIT 3", "42703" => "SELECT count(*) FROM people WHERE wage > 1", "42601" => "SELEC 1"] as $code => $text) {
    try {
        $pdo->query($text);
        check($text, false);
    } catch (PDOException $e) {
        check("$code " . $e->errorInfo[2], $e->errorInfo[0] === (string) $code);
    }
    pg_send_query($db, $text);
    $r = pg_get_result($db);
    check("its parts", pg_result_error_field($r, PGSQL_DIAG_SQLSTATE) === (string) $code && ($code != 42501 || pg_result_error_field($r, PGSQL_DIAG_MESSAGE_HINT)));
    while (pg_get_result($db)) {
    }
}
$lines = pg_copy_to($db, "(SELECT sex, count(*) FROM people GROUP BY sex)");
check(count($lines) . " lines copied", count($lines) >= 2);
$pdo->beginTransaction();
$asked = $pdo->prepare("SELECT region, count(*) FROM people GROUP BY region", [PDO::ATTR_CURSOR => PDO::CURSOR_SCROLL]);
$asked->execute();
$rows = $asked->fetchAll();
$pdo->rollBack();
check(count($rows) . " rows of a cursor", count($rows) >= 5);
echo "did queries\n";

pg_send_query($db, "SELECT pg_sleep(60)");
usleep(500000);
check("cancelled", pg_cancel_query($db) && pg_fetch_result(pg_query($db, "SELECT 1"), 0, 0) === "1");
echo "did cancels\n";
