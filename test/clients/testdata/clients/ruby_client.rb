# Ruby's pg against a running proxy: PGHOST and its kin name it.
require "pg"

def check(what, ok)
  raise "not ok #{what}" unless ok
  puts "ok #{what}"
end

def fails(code)
  yield
  raise "no error #{code}"
rescue PG::Error => e
  check("#{code} #{e.message.lines.first}", e.result && e.result.error_field(PG::Result::PG_DIAG_SQLSTATE) == code)
  check("a hint", code != "42501" || e.result.error_field(PG::Result::PG_DIAG_MESSAGE_HINT))
end

$stdout.sync = true
db = PG.connect
puts "version #{PG::VERSION}"
told = []
db.set_notice_processor { |text| told << text }
check("the server's version", db.server_version >= 150000 && db.internal_encoding)
puts "did connects"

spent = -> { db.exec("SELECT coalesce(sum(spent), 0)::text FROM dp.budget WHERE user_name = current_user").getvalue(0, 0) }
before = spent.call
columns = db.exec_params("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = $1", ["people"]).values
check("#{columns.size} columns", columns.include?(%w[age integer]))
# It asks pg_type for the types that it decodes.
db.type_map_for_results = PG::BasicTypeMapForResults.new(db)
db.type_map_for_queries = PG::BasicTypeMapForQueries.new(db)
none = db.exec("SELECT * FROM people LIMIT 0")
check("no rows of people", none.fields[0] == "age" && none.ftype(0) == 23 && none.ftable(0).positive? && none.ftablecol(0).positive?)
check("values of a column", db.exec("SELECT DISTINCT region FROM people").ntuples >= 5)
check("browsing is free", spent.call == before)
puts "did browses"

between = "SELECT count(*) FROM people WHERE age BETWEEN $1 AND $2"
first = db.exec_params(between, [30, 40]).getvalue(0, 0)
db.prepare("between", between)
check("prepared #{first}", db.exec_prepared("between", [30, 40]).getvalue(0, 0) == first)
check("in binary", db.exec_params(between, [30, 40], 1).getvalue(0, 0) == first)
[["SELECT count(*) FROM people WHERE sex = $1", ["Female"]], ["SELECT count(*) FROM people WHERE hired >= $1", [Time.utc(2020, 1, 1).strftime("%Y-%m-%d")]],
 ["SELECT count(*) FROM people WHERE age = ANY($1)", [[30, 31, 32]]], ["SELECT count(*) FROM people WHERE region = ANY($1)", [%w[north south]]]].each do |text, values|
  n = db.exec_params(text, values).getvalue(0, 0)
  check("#{text} #{n}", n.is_a?(Integer))
end
check("quoted", db.exec("SELECT '#{db.escape_string("O'Hara")}', #{db.escape_literal("a'b")}").values == [["O'Hara", "a'b"]])
puts "did parameters"
groups = db.exec("SELECT sex, count(*) AS n, avg(income) AS income, dp.low(count(*)), dp.high(count(*)) FROM people GROUP BY sex").to_a
check("groups #{groups}", groups.size >= 2 && groups.all? { |g| g["low"] < g["n"] && g["n"] < g["high"] })
check("a notice", told.any? { |t| t =~ /cost|free/ })
fails("42501") { db.exec("SELECT age FROM people LIMIT 3") }
fails("42703") { db.exec("SELECT count(*) FROM people WHERE wage > 1") }
fails("42601") { db.exec("SELEC 1") }
lines = 0
db.copy_data("COPY (SELECT sex, count(*) FROM people GROUP BY sex) TO STDOUT") { lines += 1 while db.get_copy_data }
check("#{lines} lines copied", lines >= 2)
rows = 0
db.send_query("SELECT region, count(*) FROM people GROUP BY region")
db.set_single_row_mode
db.get_result.stream_each { rows += 1 }
nil while db.get_result
check("#{rows} rows one by one", rows >= 5)
db.transaction do |t|
  t.exec("DECLARE c CURSOR FOR SELECT region, count(*) FROM people GROUP BY region")
  check("rows of a cursor", t.exec("FETCH 2 FROM c").ntuples == 2 && t.exec("FETCH ALL FROM c").ntuples >= 3)
end
piped = []
db.enter_pipeline_mode
3.times { db.send_query_params(between, [30, 40]) }
db.pipeline_sync
3.times { piped << db.get_result.getvalue(0, 0); db.get_result }
db.get_result
db.exit_pipeline_mode
check("piped #{piped}", piped == [first] * 3)
puts "did queries"

db.send_query("SELECT pg_sleep(60)")
sleep 0.5
db.cancel
fails("57014") { db.get_last_result }
check("after a cancel", db.exec("SELECT 1").getvalue(0, 0) == 1)
puts "did cancels"
