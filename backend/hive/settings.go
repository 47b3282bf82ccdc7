package hive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrSettings says that a session does not have the settings that it was opened with.
var ErrSettings = errors.New("hive: the server does not keep to a session's settings")

// settings are what Spark is sent of each session, so that neither the server's own configuration nor a row decides how
// a statement ends (privacy rule 24) or what it means. Most are the defaults of Spark 4.0.
var settings = map[string]string{
	// What SQL means.
	"spark.sql.ansi.enabled":                              "true", // what overflows or does not fit is never changed silently
	"spark.sql.ansi.enforceReservedKeywords":              "false",
	"spark.sql.ansi.doubleQuotedIdentifiers":              "false",
	"spark.sql.session.timeZone":                          "UTC",
	"spark.sql.timestampType":                             "TIMESTAMP_LTZ", // the word TIMESTAMP
	"spark.sql.decimalOperations.allowPrecisionLoss":      "false",         // decimals keep their digits after the point
	"spark.sql.legacy.allowNegativeScaleOfDecimal":        "false",
	"spark.sql.caseSensitive":                             "false",
	"spark.sql.groupByOrdinal":                            "true",  // GROUP BY 1
	"spark.sql.variable.substitute":                       "false", // ${…} in a name is part of the name
	"spark.sql.parser.quotedRegexColumnNames":             "false",
	"spark.sql.legacy.charVarcharAsString":                "false",
	"spark.sql.optimizer.runtime.bloomFilter.enabled":     "false",
	"spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
	// What files hold.
	"spark.sql.hive.convertMetastoreParquet":     "true",
	"spark.sql.parquet.binaryAsString":           "false",
	"spark.sql.parquet.int96TimestampConversion": "false",
	"spark.sql.parquet.mergeSchema":              "false",
	"spark.sql.parquet.aggregatePushdown":        "false",
	"spark.sql.legacy.parquet.nanosAsLong":       "false",
	"spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED", // a day before 1582 does not fail the statement
	"spark.sql.parquet.int96RebaseModeInRead":    "CORRECTED",
	"spark.sql.files.ignoreCorruptFiles":         "false", // rows are not left out without a word
	"spark.sql.files.ignoreMissingFiles":         "false",
	// What decides whether a statement ends: rows are sorted and merged, which goes to the disk where memory is short,
	// and are not gathered in the memory of one process, where their number and size would have a limit.
	"spark.sql.autoBroadcastJoinThreshold":                    "-1",
	"spark.sql.adaptive.autoBroadcastJoinThreshold":           "-1",
	"spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "0",
	"spark.sql.join.preferSortMergeJoin":                      "true",
	"spark.sql.codegen.fallback":                              "true", // code that grows too long is interpreted
	"spark.sql.codegen.factoryMode":                           "FALLBACK",
	"spark.sql.thriftServer.incrementalCollect":               "false",
	"spark.sql.execution.interruptOnCancel":                   "true",
}

// Settled opens a session with the settings that measures need, and holds what the server says of it against them.
func Settled(ctx context.Context, config Config) (*Session, error) {
	config.Settings = map[string]string{}
	for name, value := range settings {
		config.Settings["set:hiveconf:"+name] = value
	}
	s, err := Open(ctx, config)
	if err != nil {
		return nil, err
	}
	left := maps.Clone(settings)
	err = s.Query(ctx, "SET", func(r Row) error { // what differs from a server's defaults, or was set
		if value, ours := settings[r[0].Text]; ours && len(r) == 2 && value == r[1].Text {
			delete(left, r[0].Text)
		}
		return nil
	})
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%w: %s", ErrSettings, strings.Join(slices.Sorted(maps.Keys(left)), ", "))
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}
