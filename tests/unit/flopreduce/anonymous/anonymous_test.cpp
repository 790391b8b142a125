// Names of traces that are given to others.
#include "anonymous/anonymize.h"
#include "anonymous/keyed_hash.h"
#include "anonymous/names.h"
#include "catch.h"
#include "phases/phases.h"
#include "reader/packet_reader.h"
#include "reduce_bytes.h"
#include "report/operators/gradients.h"
#include "sequences.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

const KeyedHash kHash({1, 2});

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("keyed hash: the test vector of the paper on SipHash") {
  // Appendix A: key 00 01 .. 0f, input 00 01 .. 0e.
  const KeyedHash hash({0x0706050403020100U, 0x0f0e0d0c0b0a0908U});
  std::string input;
  for (char c = 0; c < 15; ++c) input += c;
  CHECK(hash.of(input) == 0xa129ca6149be45e5U);
}

TEST_CASE("anonymous names: public ones stay, others keep the names that figures depend on") {
  const AnonymousNames names(kHash);
  for (const char* name :
       {"aten::conv2d, sizes = [[8, 1, 14, 14], [8]]", "AddmmBackward0",
        "autograd::engine::evaluate_function: ConvolutionBackward0, sizes = [[8, 64]]", "forward",
        "optimizer", "loss", "c10d::allreduce_",
        "aten::conv2d, sizes = [[8, 1], [], []], stride = [2, 2], padding = same",
        "aten::avg_pool2d, sizes = [[8, 1]], kernel_size = [2, 2], ceil_mode = True",
        "aten::mm, sizes = [[8, 1], [1, 2]], types = [ComplexFloat, -]"})
    CHECK(names.range(name) == name);
  for (const char* name : {"_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi",
                           "ampere_sgemm_128x64_tn", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"})
    CHECK(names.kernel(name) == name);
  for (const char* secret :
       {"AcmeNet.forward", "acme_encoder/forward", "/home/acme/train.py", "aten::acme_op, x = acme",
        "acme::op, sizes = [[2, 3]]", "AcmeBackward", "Optimizer.step#Acme.step"}) {
    const std::string shown = names.range(secret);
    CHECK_FALSE(has(shown, "cme"));
    const PhaseRules rules;
    CHECK(rules.match(PhaseRules::Subject::kRange, shown) ==
          rules.match(PhaseRules::Subject::kRange, secret));
  }
  // A template argument of the user's inside a public name.
  for (const char* secret :
       {"_ZN2at6native13reduce_kernelIZN4acme6secretEvEEvi", "acme_gemm", "_Z11acme_secretPf",
        "void acme::secret<128x64>()", "_ZN4acme11wgrad_tilesEv"}) {
    const std::string shown = names.kernel(secret);
    CHECK_FALSE(has(shown, "acme"));
    CHECK_FALSE(has(shown, "secret"));
    CHECK(gradient_direction(shown) == gradient_direction(secret));
  }
  CHECK(has(names.range("acme::op, sizes = [[2, 3]]"), "sizes = [[2, 3]]"));
  // A function and its gradient keep the word that joins them, however it is written.
  const std::string function = names.range("AcmeNet"), node = names.range("AcmeNetBackward");
  CHECK(node == function + "Backward");
  CHECK(names.range("acme") != names.range("acmf"));
  CHECK(AnonymousNames(KeyedHash({1, 3})).range("acme") != names.range("acme"));
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
