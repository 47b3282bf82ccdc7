package proxy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgproto3/v2"
)

// crdbLine writes a message as CockroachDB's scripts do.
func crdbLine(m pgproto3.BackendMessage, args map[string][]string) string {
	has := func(name string) bool { _, ok := args[name]; return ok }
	switch m := m.(type) {
	case *pgproto3.ErrorResponse:
		out := map[string]any{"Type": "ErrorResponse", "Code": m.Code}
		if mapped := args["mapError"]; len(mapped) == 2 && mapped[0] == m.Code {
			out["Code"] = mapped[1]
		}
		if has("keepErrMessage") {
			out["Message"] = m.Message
		}
		if m.ConstraintName != "" && !has("ignore_constraint_name") {
			out["ConstraintName"] = m.ConstraintName
		}
		return jsonLine(out)
	case *pgproto3.RowDescription:
		for i := range m.Fields {
			if has("ignore_table_oids") {
				m.Fields[i].TableOID = 0
			}
			if has("ignore_type_oids") {
				m.Fields[i].DataTypeOID = 0
			}
			if has("ignore_data_type_sizes") {
				m.Fields[i].DataTypeSize = 0
			}
		}
	}
	return jsonLine(m)
}

func jsonLine(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// materializeLine writes a message as Materialize's scripts do.
func materializeLine(m pgproto3.BackendMessage, args map[string][]string) string {
	line := func(kind string, v any) string { return kind + " " + jsonLine(v) }
	switch m := m.(type) {
	case *pgproto3.ReadyForQuery:
		return line("ReadyForQuery", map[string]any{"status": string(m.TxStatus)})
	case *pgproto3.RowDescription:
		fields := []any{}
		for _, f := range m.Fields {
			fields = append(fields, map[string]any{"name": string(f.Name)})
		}
		return line("RowDescription", map[string]any{"fields": fields})
	case *pgproto3.DataRow:
		fields := []string{}
		for _, v := range m.Values {
			if v == nil {
				fields = append(fields, "NULL")
			} else {
				fields = append(fields, shownBytes(v))
			}
		}
		return line("DataRow", map[string]any{"fields": fields})
	case *pgproto3.CommandComplete:
		return line("CommandComplete", map[string]any{"tag": string(m.CommandTag)})
	case *pgproto3.ErrorResponse:
		return line("ErrorResponse", errorFields(m, args))
	case *pgproto3.NoticeResponse:
		return line("NoticeResponse", errorFields((*pgproto3.ErrorResponse)(m), args))
	case *pgproto3.CopyOutResponse:
		return line("CopyOut", copyFormats(m.OverallFormat, m.ColumnFormatCodes))
	case *pgproto3.CopyInResponse:
		return line("CopyIn", copyFormats(m.OverallFormat, m.ColumnFormatCodes))
	case *pgproto3.CopyData:
		return line("CopyData", shownBytes(m.Data))
	case *pgproto3.ParameterDescription:
		return line("ParameterDescription", map[string]any{"parameters": append([]uint32{}, m.ParameterOIDs...)})
	case *pgproto3.ParameterStatus:
		return line("ParameterStatus", map[string]any{"name": m.Name, "value": m.Value})
	}
	return strings.TrimPrefix(reflect.TypeOf(m).String(), "*pgproto3.")
}

// shownBytes are bytes as text, or as numbers where they are none.
func shownBytes(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%v", b)), ", ")
}

func copyFormats(overall byte, columns []uint16) map[string]any {
	names, formats := []string{"text", "binary"}, []string{}
	for _, c := range columns {
		formats = append(formats, names[c])
	}
	return map[string]any{"format": names[overall], "column_formats": formats}
}

func errorFields(m *pgproto3.ErrorResponse, args map[string][]string) map[string]any {
	wanted := "CMS"
	if list, ok := args["err_field_typs"]; ok {
		wanted = strings.Join(list, "")
	}
	if _, ok := args["no_error_fields"]; ok {
		wanted = ""
	}
	fields := []any{}
	add := func(kind, value string) {
		if value != "" && slices.Contains(strings.Split(wanted, ""), kind) {
			fields = append(fields, map[string]any{"typ": kind, "value": value})
		}
	}
	add("S", m.Severity)
	add("C", m.Code)
	add("M", m.Message)
	add("D", m.Detail)
	add("H", m.Hint)
	if m.Position > 0 {
		add("P", fmt.Sprint(m.Position))
	}
	return map[string]any{"fields": fields}
}
