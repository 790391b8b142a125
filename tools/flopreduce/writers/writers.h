// The forms of output: each writer prints sections or tables, and knows no subject.
#pragma once
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

class Launches;

// A form, by the name that it has on a command line, and what it reads of a report. What no form
// reads is not worked out.
struct Form {
  enum class Reads : uint8_t {
    kSections,    // the first screen, or the sections that are asked for
    kTables,      // the tables that are asked for, or all
    kEveryTable,  // whatever is asked for
    kRangeStacks,
    kLaunches,  // each one, while traces are read
  };
  struct Traits {
    bool of_answers = false;                    // of every command's answer, not of a report only
    bool facts = false;                         // it may show tables of what single processes did
    const char* kept_from_terminals = nullptr;  // "a page"; null: a terminal may show it
  };
  const char* name;
  const char* purpose;
  Reads reads;
  Traits traits = {};
};
std::span<const Form> forms();
const Form& form_named(std::string_view name);  // there must be one

struct TextOptions {
  bool color = false;
  size_t width = 100;  // columns of the terminal
  size_t top = 10;     // lines of long tables
  bool fit = false;    // no line is wider than that: columns go, prose is broken
};
void write_text(std::ostream& out, std::span<const Section> sections, const TextOptions& options);
size_t text_lines(const Line& line, const TextOptions& options);  // that it takes there

// GitHub Flavored Markdown, for comments on pull requests and for notes. Numbers as people read
// them, to the right; of long tables the first `top` rows. Every text is escaped: nothing in a name
// is taken for Markdown or HTML.
void write_markdown(std::ostream& out, std::span<const Section> sections, size_t top);

// Pages that need nothing else: no network, no fonts, no other file.
//
// The data are in the page as JSON without a "<"; scripts make text nodes of them and nothing else.
// The page's policy admits its own script and style by their hashes, and no request at all.
// `program`: what made them, "flopinj 1.2".
void write_html(std::ostream& out, const Report& report, std::string_view program);
// A page of any sections, such as a comparison's; `title` is its heading. `sides`: reports of which
// the page shows where the peak went, beside each other.
struct PageSide {
  const char* name;  // "A"
  const Report* report;
};
void write_html(std::ostream& out, const std::string& title, const std::vector<Section>& sections,
                std::string_view program, std::span<const PageSide> sides = {});

// Tables as JSON (schema 3): an object with a list of rows for each table, by the table's key, each
// row an object by column, on a line of its own. The table `figures` has one row, which is an
// object right there. Written as rows are made: memory does not depend on their number.
//
// FLOP are a number, and KEY_exact has their decimal text, since many readers round integers from
// 2^53 on. Of a bound KEY is null, and KEY_at_least or KEY_at_most has it. KEY_estimated is true
// beside an estimate. Where KEY is null for a known reason, KEY_why has it.
void write_json(std::ostream& out, std::span<const Table> tables);
// The list of rows of one table.
void write_json_rows(std::ostream& out, const Table& table);
// What the JSON of every report is valid by, as JSON.
void write_schema(std::ostream& out);

// RFC 4180, for programs and spreadsheets: a header of the columns' keys, then the rows; lines end
// in CR LF. Numbers are exact, in the unit of their key; unknown ones are empty. Every column of
// numbers but those of plain counts has a column KEY_mark after it: ">=", "<=", "~" or nothing.
// Columns of kind kExactFlop are left out: they repeat another.
//
// Texts are printable() UTF-8. One that a spreadsheet would take for a formula (it starts with one
// of = + - @ ' or a tab, CR or LF) gets a ' in front; what follows the ' is the text.
void write_csv(std::ostream& out, const Table& table);

// Folded stacks, one line each: "range;range;kernel weight". flamegraph.pl, speedscope and inferno
// read them. Lines add up to the report's total. Stacks of weight 0, or whose weight is not known,
// have none. Names are printable(); a semicolon in one, which would end the frame, is written as
// \x3B.
enum class StackWeight : uint8_t { kFlop, kTime, kLaunches };  // FLOP, ns, 1
void write_folded(std::ostream& out, const Report& report, StackWeight weight);

// Launches on a time line, as JSON in the Trace Event Format, which Perfetto (ui.perfetto.dev) and
// chrome://tracing open. Format: "Trace Event Format", Google,
// docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
//
// One process of the format for each device of each recorded process: counters of FLOP/s and, where
// peaks are known, of HFU; a track of training steps; and for each of its streams three tracks,
// NVTX ranges as their kernels lie on the GPU, phases, and launches, each one complete event ("X").
// Launches of a track never overlap: those that ran beside another of their stream (nodes of a
// graph) are on further tracks of that stream. Written as read: memory is bounded, whatever the
// number of launches.
//
// Times are microseconds since the first recording began, with three decimals: exact nanoseconds.
// FLOP above 2^53 are decimal strings. Returns how many launches were written.
struct TraceEventOptions {
  std::string_view program;
  int fma = 2;
  // Launches that ran in this time, since the first recording began.
  uint64_t begin_ns = 0, end_ns = UINT64_MAX;
};
struct WrittenEvents {
  uint64_t launches = 0, outside = 0;          // that are written, and that ran at other times
  uint64_t begin_ns = UINT64_MAX, end_ns = 0;  // from the first launch to the last one, of all
};
WrittenEvents write_trace_events(std::ostream& out, Launches& launches,
                                 const TraceEventOptions& options);

}  // namespace flopinj::reduce
