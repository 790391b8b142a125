#include <cxxabi.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/message.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "anonymous/anonymize.h"
#include "anonymous/names.h"
#include "catch.h"
#include "phases/phases.h"
#include "reader/packet_reader.h"
#include "reduce_bytes.h"
#include "report/operators/gradients.h"
#include "sections/sections.h"
#include "sequences.h"
#include "support/effort.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

namespace trace = flopinj::trace;

const KeyedHash kHash({1, 2});

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string anonymous(const std::string& bytes, const AnonymizeOptions& options = {}) {
  const auto input = Input::from_memory("t", bytes.data(), bytes.size());
  DamageLog damage;
  const std::string out = anonymize(*input, AnonymousNames(kHash), options, damage);
  CHECK_FALSE(damage.partial());
  return out;
}

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Every field of the format that is set in the message, in messages within it too.
void for_each_field(Message& message,
                    const std::function<void(Message&, const FieldDescriptor&)>& visit) {
  const auto& fields = *message.GetReflection();
  std::vector<const FieldDescriptor*> present;
  fields.ListFields(message, &present);
  for (const auto* field : present) {
    visit(message, *field);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated())
      for_each_field(*fields.MutableMessage(&message, field), visit);
    else
      for (int i = 0; i < fields.FieldSize(message, field); ++i)
        for_each_field(*fields.MutableRepeatedMessage(&message, field, i), visit);
  }
}

bool is_text(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
}

std::vector<std::string> texts_of(const std::string& trace_bytes) {
  trace::Trace trace;
  REQUIRE(trace.ParseFromString(trace_bytes));
  std::vector<std::string> texts;
  for_each_field(trace, [&](Message& message, const FieldDescriptor& field) {
    const auto& fields = *message.GetReflection();
    if (!is_text(field)) return;
    if (!field.is_repeated()) texts.push_back(fields.GetString(message, &field));
    for (int i = 0; field.is_repeated() && i < fields.FieldSize(message, &field); ++i)
      texts.push_back(fields.GetRepeatedString(message, &field, i));
  });
  return texts;
}

std::string small(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Invented animals are in every secret name, so that what is left of one is found.
constexpr std::array<std::string_view, 8> kAnimals = {"quagga", "okapi", "zebra", "lemur",
                                                      "tapir",  "bison", "moose", "otter"};
constexpr std::string_view kNumber = "48151";

std::string leaks(const std::string& text) {
  const std::string letters = small(text);
  for (const std::string_view animal : kAnimals)
    if (has(letters, animal)) return std::string(animal) + " in " + text.substr(0, 300);
  return has(letters, kNumber) ? "a number in " + text.substr(0, 300) : std::string();
}

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : "";
}

// Mangled names by the grammar of the Itanium C++ ABI, and what CUDA, Triton and XLA make of names.
class Mangler {
 public:
  explicit Mangler(uint64_t seed) : random_(seed) {}

  std::string name() {
    std::string out;
    do out = "_Z" + encoding(3);
    while (out.size() > 400 || demangled(out).empty());  // the demangler takes up to 1,024 bytes
    if (pick(10) == 0) out += pick(2) == 0 ? ".constprop.0" : "." + small(animal()) + ".1";
    return out;
  }

  // One that a demangler of these days, or any, does not read.
  std::string other_name() {
    const std::string a = secret(), b = secret(), n = std::to_string(pick(20));
    switch (pick(10)) {
      case 0:  // constraints: a template's, a parameter's, a function's
        return "_Z" + counted(a) + "ITk" + counted(b) + "fEvT_";
      case 1:
        return "_ZN" + component() + counted(a) + "IfQ" + counted(b) + "IT_EEEvS1_";
      case 2:
        return "_Z" + counted(a) + "IN" + counted(a) + counted(b) + "EEvT_Q" + counted(b) + "IT_E";
      case 3:  // a module's name
        return "_ZW" + counted(a) + counted(b) + "v";
      case 4:
        return "__device_stub__Z" + encoding(1);
      case 5:
        return "__nv_static_45__" + counted(a + "_cpp1_ii_" + b) + "__Z" + encoding(1);
      case 6:
        return "triton_poi_fused__to_copy_" + a + "_add_" + b + "_" + n;
      case 7:
        return "_" + a + "_fwd_kernel_0d1d2d" + n + "c";
      case 8:
        return (pick(2) == 0 ? "jit_" + a + "__" : "loop_" + a + "_fusion.") + b + "_" + n;
      default:
        return "void " + a + "::" + b + "<at::" + a + "<float, 128>, " + n + ">(" + b +
               "::{lambda(" + a + ")#1}, int) [clone ." + small(animal()) + ".0]";
    }
  }

 private:
  size_t pick(size_t of) {
    return static_cast<size_t>(random_.uniform() * static_cast<double>(of));
  }
  std::string animal() { return std::string(kAnimals[pick(kAnimals.size())]); }

  std::string secret() {
    std::string a = animal(), b = animal();
    switch (pick(7)) {
      case 0:
        return a + "_" + b;
      case 1:
        a[0] = static_cast<char>(std::toupper(a[0]));
        b[0] = static_cast<char>(std::toupper(b[0]));
        return a + b;
      case 2:
        return a + std::string(kNumber);
      case 3:
        return "_" + a + "_128x64_" + b;
      case 4:
        return a + "_wgrad_" + b + "_kernel";
      case 5:
        return std::string(1, static_cast<char>('a' + pick(26))) + a + std::to_string(pick(99999));
      default:
        return a + "_" + std::string(kNumber) + "_forward";
    }
  }
  static std::string counted(const std::string& id) { return std::to_string(id.size()) + id; }

  std::string identifier() {
    static constexpr std::array<const char*, 8> kPublic = {
        "at", "native", "reduce_kernel", "cutlass", "thrust", "MulFunctor", "cub", "Kernel2"};
    const std::string id = counted(pick(3) == 0 ? kPublic[pick(kPublic.size())] : secret());
    return pick(12) == 0 ? id + "B" + counted(secret()) : id;  // an ABI tag
  }
  std::string component() {
    if (pick(12) != 0) return identifier();
    if (pick(3) == 0) return "12_GLOBAL__N_1";
    return counted("_GLOBAL__N__5ca1ab1e_" + counted(secret() + "_cu") + "_" + secret());
  }
  std::string encoding(int depth) {
    std::string out = "N";
    for (size_t n = 1 + pick(3); n > 0; --n) out += component();
    out += identifier();
    const bool is_template = pick(4) != 0;
    if (is_template) out += arguments(depth);
    out += "E";
    if (is_template) out += "v";  // the result
    const size_t parameters = pick(3);
    for (size_t i = 0; i < parameters; ++i)
      out += is_template && pick(4) == 0 ? "PKT_" : type(depth);
    return parameters == 0 ? out + "v" : out;
  }
  std::string arguments(int depth) {
    std::string out = "I";
    for (size_t n = 1 + pick(3); n > 0; --n) out += argument(depth);
    return out + "E";
  }
  std::string argument(int depth) {
    switch (pick(7)) {
      case 0:
        return "Li" + std::to_string(pick(1000)) + "E";
      case 1:
        return "LN" + component() + identifier() + "E" + std::to_string(pick(9)) + "E";
      case 2:
        return "J" + type(depth) + type(depth) + "E";
      case 3:
        return depth > 0 ? "XadL_Z" + encoding(depth - 1) + "EE" : "Lb1E";
      default:
        return type(depth);
    }
  }
  std::string type(int depth) {
    const size_t kind = pick(depth > 0 ? 13 : 7);
    switch (kind) {
      case 0:
        return "f";
      case 1:
        return "Pi";
      case 2:
        return "PK" + identifier();
      case 3:
        return "u" + counted(secret());  // a vendor's type
      case 4:
        return "N" + component() + identifier() + "E";
      case 5:
        return "St6vectorI" + identifier() + "E";
      case 6:
        return "PS_";  // what the name began with
      case 7:
        return "PFv" + type(depth - 1) + "E";
      case 8:  // an extended lambda of CUDA's
        return "17__nv_dl_wrapper_tI11__nv_dl_tagIPFvvEXadL_Z" + encoding(depth - 1) + "EELj1EEJ" +
               type(depth - 1) + "EE";
      case 9:  // a lambda in a function, and its second
        return "Z" + encoding(depth - 1) + "EUlvE_";
      case 10:
        return "ZN" + component() + identifier() + "E" + type(depth - 1) + "EUl" + type(depth - 1) +
               "E0_";
      case 11:  // a class in a function
        return "Z" + encoding(depth - 1) + "E" + counted(secret());
      default:
        return "N" + component() + identifier() + arguments(depth - 1) + "E";
    }
  }

  Random random_;
};

// Whether two texts are the same but for their identifiers, and equal identifiers are equal in
// both.
bool same_structure(const std::string& a, const std::string& b) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  std::map<std::string, std::string> there, back;
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_word(a[i]) != is_word(b[j])) return false;
    if (!is_word(a[i])) {
      if (a[i++] != b[j++]) return false;
      continue;
    }
    std::string left, right;
    while (i < a.size() && is_word(a[i])) left += a[i++];
    while (j < b.size() && is_word(b[j])) right += b[j++];
    if (there.emplace(left, right).first->second != right) return false;
    if (back.emplace(right, left).first->second != left) return false;
  }
  return i == a.size() && j == b.size();
}

}  // namespace

TEST_CASE("keyed hash: the test vector of the paper on SipHash") {
  // Appendix A: key 00 01 .. 0f, input 00 01 .. 0e.
  const KeyedHash hash({0x0706050403020100U, 0x0f0e0d0c0b0a0908U});
  std::string input;
  for (char c = 0; c < 15; ++c) input += c;
  CHECK(hash.of(input) == 0xa129ca6149be45e5U);
}

TEST_CASE("anonymous names: what figures are made by stays, of public names and others") {
  const AnonymousNames names(kHash);
  for (const char* name :
       {"aten::conv2d, sizes = [[8, 1, 14, 14], [8]]", "AddmmBackward0", "forward", "optimizer",
        "loss", "aten::conv2d, sizes = [[8, 1], [], []], stride = [2, 2], padding = same",
        "aten::avg_pool2d, sizes = [[8, 1]], kernel_size = [2, 2], ceil_mode = True",
        "aten::mm, sizes = [[8, 1], [123456, 2]], types = [ComplexFloat, -]"})
    CHECK(names.name(name) == name);
  for (const char* secret :
       {"AcmeNet.forward", "acme_encoder/forward", "/home/acme/train.py", "aten::acme_op, x = acme",
        "acme::op, sizes = [[2, 3]]", "AcmeBackward", "Optimizer.step#Acme.step", "layer.acme.12",
        "feed_forward acme", "acme-all-reduce", "gradient_tape/acme/MatMul", "acme4815162342"}) {
    const std::string shown = names.name(secret);
    CHECK_FALSE(has(shown, "cme"));
    CHECK_FALSE(has(shown, "4815162342"));
    const PhaseRules rules;
    CHECK(rules.match(PhaseRules::Subject::kRange, shown) ==
          rules.match(PhaseRules::Subject::kRange, secret));
  }
  for (const char* secret :
       {"_ZN2at6native13reduce_kernelIZN4acme6secretEvEEvi", "acme_gemm", "_Z11acme_secretPf",
        "_ZN6thrust6deviceI15MySecretFunctorEEvT_", "_ZN2at6native12secret_thingEv",
        "void acme::secret<128x64>()", "_ZN4acme11wgrad_tilesEv", "ampere_acme_128x64_tn",
        "_ZN53_GLOBAL__N__00000000_18_secret_acme_file_cu_1a2b_1234511secret_acmeEv",
        "_ZN4acme9secretILi", "acme_winograd_secret", "secretallreduce_acme", "acme_bwd_data"}) {
    const std::string shown = names.name(secret);
    CAPTURE(secret, shown);
    CHECK_FALSE(has(shown, "acme"));
    CHECK_FALSE(has(small(shown), "secret"));
    CHECK(gradient_direction(shown) == gradient_direction(secret));
    const PhaseRules rules;
    CHECK(rules.match(PhaseRules::Subject::kKernel, shown) ==
          rules.match(PhaseRules::Subject::kKernel, secret));
  }
  // Numbers stay where they are sizes or short; addresses do not.
  CHECK(has(names.name("acme::op, sizes = [[2, 123456]]"), "sizes = [[2, 123456]]"));
  CHECK(has(names.name("acme_128x64_32x3"), "_128x64_32x3"));
  for (const char* text : {"host 10.1.2.3", "job 481516", "x9q7"})
    CHECK_FALSE((has(names.name(text), "10.1") || has(names.name(text), "481516") ||
                 has(names.name(text), "x9q7")));
  // A function and its gradient keep the word that joins them, however it is written.
  const std::string function = names.name("AcmeNet"), node = names.name("AcmeNetBackward");
  CHECK(node == function + "Backward");
  // What differs still does.
  std::set<std::string> shown;
  for (const char* name : {"acme", "acmf", "Acme", "ACME", "acme1", "acme_net", "AcmeNet",
                           "acmenet", "\xc3\xa9t\xc3\xa9", "\xc3\xa9t\xc3\xa8"})
    shown.insert(names.name(name));
  CHECK(shown.size() == 10);
  CHECK(AnonymousNames(KeyedHash({1, 3})).name("acme") != names.name("acme"));
}

TEST_CASE("anonymous names: a name of any depth comes to an end") {
  const AnonymousNames names(kHash);
  std::string deep = "_Z1f", wide = "_Z1fI", again = "_Z1f";
  for (size_t i = 0; i < 16'000; ++i) deep += "P";
  for (size_t i = 0; i < 400; ++i) wide += "N5okapi1aEPS_";
  for (size_t i = 0; i < 30; ++i) again += "PFv5okapiS_S_E";  // a graph with many paths
  for (const std::string& name : {deep + "i", wide + "Evv", again, deep + deep, wide})
    CHECK(leaks(names.name(name)).empty());
}

// Compared without the code under test: abi::__cxa_demangle reads both names.
TEST_CASE("anonymous traces: 4,000 names of kernels keep their structure, and no secret stays") {
  constexpr uint32_t kNames = effort(4'000U, 800U), kMangled = kNames / 8 * 7, kFirst = 20'000;
  Mangler mangler(7);
  TraceBuilder t = started();
  std::vector<TraceBuilder::Launch> launches;
  for (uint32_t i = 0; i < kNames; ++i) {
    const std::string name = i < kMangled ? mangler.name() : mangler.other_name();
    CAPTURE(name);
    REQUIRE((i >= kMangled || !demangled(name).empty()));
    t.kernel(kFirst + i, name, 1 + i);
    t.path(kFirst + i, 0, "okapi/" + std::to_string(i) + " Zebra" + std::to_string(i));
    launches.push_back({.signature = kFirst + i, .duration_ns = 100 + i % 7, .path = kFirst + i});
  }
  t.launches(launches);
  t.end();
  const std::string summary = merge_bytes({{"a", t.bytes()}}).bytes;
  for (const std::string& bytes : {t.bytes(), summary}) {
    const std::string out = anonymous(bytes);
    CHECK(leaks(out).empty());
    size_t mangled = 0;
    const auto before = texts_of(bytes), after = texts_of(out);
    REQUIRE(before.size() == after.size());
    std::map<std::string, std::string> there, back;
    for (size_t i = 0; i < before.size(); ++i) {
      CHECK(leaks(after[i]).empty());
      CAPTURE(before[i], after[i]);
      if (!demangled(before[i]).empty()) {
        ++mangled;
        CHECK(same_structure(demangled(before[i]), demangled(after[i])));
      }
      CHECK(there.emplace(before[i], after[i]).first->second == after[i]);
      CHECK(back.emplace(after[i], before[i]).first->second == before[i]);
    }
    CHECK(mangled >= kMangled - 100);  // some names are drawn twice
    const Report named = reduce_bytes({bytes}), nameless = reduce_bytes({out});
    CHECK(first_difference(report_tables(named), report_tables(nameless)) == std::nullopt);
  }
}

TEST_CASE("anonymous traces: it is said of every field with text what becomes of it") {
  std::vector<const google::protobuf::Descriptor*> next{trace::Trace::descriptor()};
  std::set<std::string> undeclared;
  size_t texts = 0;
  while (!next.empty()) {
    const auto* message = next.back();
    next.pop_back();
    for (int i = 0; i < message->field_count(); ++i) {
      const FieldDescriptor& field = *message->field(i);
      if (field.message_type() != nullptr) next.push_back(field.message_type());
      texts += is_text(field);
      if (!has_treatment(field)) undeclared.insert(std::string(field.full_name()));
    }
  }
  CHECK(texts > 20);
  CHECK(undeclared == std::set<std::string>{});
  // One of another format has none.
  CHECK_FALSE(has_treatment(*google::protobuf::FieldDescriptorProto::descriptor()->field(0)));
}

// A secret in every field of every packet. What stays is the recorder's own words and the device's.
TEST_CASE("anonymous traces: no field keeps what the program or its machine may have put there") {
  const std::set<std::string> ours = {"Header.mode",
                                      "Device.name",
                                      "Device.chip",
                                      "MetricGroup.name",
                                      "MetricGroup.metric",
                                      "NeededIf.metric",
                                      "NeededIf.included",
                                      "Reason.reason",
                                      "Diagnostic.code",
                                      "Damage.kind",
                                      "MetricGroup.instead_of",
                                      "Header.imported_from"};
  const std::string secret = "/home/okapi/ZebraNet48151.py, lemur = 48151";
  const auto fill = [&](auto& self, Message& message) -> void {
    const auto& fields = *message.GetReflection();
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const auto* field = message.GetDescriptor()->field(i);
      const bool stays =
          ours.contains(message.GetDescriptor()->name() + "." + std::string(field->name()));
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
        self(self, field->is_repeated() ? *fields.AddMessage(&message, field)
                                        : *fields.MutableMessage(&message, field));
      else if (is_text(*field) && !stays && field->is_repeated())
        fields.AddString(&message, field, secret), fields.AddString(&message, field, secret);
      else if (is_text(*field) && !stays)
        fields.SetString(&message, field, secret);
    }
  };
  TraceBuilder t;
  size_t packets = 0;
  const auto* body = trace::TracePacket::descriptor()->oneof_decl(0);
  for (int i = 0; i < body->field_count(); ++i) {
    trace::TracePacket p;
    fill(fill, *p.GetReflection()->MutableMessage(&p, body->field(i)));

    t.add(p);
    ++packets;
  }
  CHECK(packets >= 20);
  const auto input = Input::from_memory("t", t.bytes().data(), t.bytes().size());
  DamageLog damage;
  const std::string out = anonymize(*input, AnonymousNames(kHash), {}, damage);
  CHECK(leaks(out).empty());
  for (const std::string& text : texts_of(out)) CHECK(leaks(text).empty());
}

TEST_CASE("anonymous traces: names stay that are asked for") {
  TraceBuilder t = started();
  t.kernel(1, "_Z5okapiv", 5);
  t.path(1, 0, "lemur");
  t.launches({{.signature = 1, .path = 1}});
  t.end();
  const auto has_both = [&](const AnonymizeOptions& options) {
    const std::string out = anonymous(t.bytes(), options);
    return std::pair(has(out, "okapi"), has(out, "lemur"));
  };
  CHECK(has_both({}) == std::pair(false, false));
  CHECK(has_both({.keep_ranges = true}) == std::pair(false, true));
  CHECK(has_both({.keep_kernels = true}) == std::pair(true, false));
}

TEST_CASE("anonymous traces: any bytes come to an end, and what is left is a trace") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    TraceBuilder t;
    t.header(seed);
    t.kernel(1, std::string(1 + seed % 40, static_cast<char>(random.uniform() * 256)), 5);
    t.path(1, 0, "_ZN" + std::to_string(seed * 1000003) + "x");
    t.end();
    std::string bytes = t.bytes();
    for (size_t n = seed % 8; n > 0; --n)
      bytes[static_cast<size_t>(random.uniform() * static_cast<double>(bytes.size()))] ^=
          static_cast<char>(1 << (n - 1));
    const auto input = Input::from_memory("t", bytes.data(), bytes.size());
    DamageLog damage, none;
    const std::string out = anonymize(*input, AnonymousNames(kHash), {}, damage);
    const auto again = Input::from_memory("u", out.data(), out.size());
    PacketReader reader(*again, none, Batches::kCheck);
    Packet packet;
    while (reader.next(packet)) {
    }
    CHECK_FALSE(none.partial());
  }
}
