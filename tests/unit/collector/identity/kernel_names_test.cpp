#include <collector/options/kernel_names.h>
#include <cxxabi.h>

#include <cstdlib>
#include <memory>

#include "catch.h"

using namespace flopinj;

namespace {

// By another way: what C++'s runtime makes of the name, without template arguments, parameters,
// result and namespaces.
std::string base_of_demangled(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  REQUIRE(status == 0);
  std::string plain;
  int depth = 0;
  for (const char* c = text.get(); *c != '\0'; ++c) {
    if (*c == '<' || *c == '(') ++depth;
    if (depth == 0) plain += *c;
    if (*c == '>' || *c == ')') --depth;
  }
  if (const size_t colons = plain.rfind("::"); colons != plain.npos) plain.erase(0, colons + 2);
  if (const size_t space = plain.rfind(' '); space != plain.npos) plain.erase(0, space + 1);
  return plain;
}

}  // namespace

TEST_CASE("a function's own name is what the C++ runtime's demangler has") {
  // From g++, of functions in the manner of PyTorch, CUTLASS and CUB.
  for (const char* mangled :
       {"_Z4axpyifPKfPf", "_ZL6hiddenPi", "_Z6valuedILc120EEvv", "_Z6valuedILln7EEvv",
        "_Z5modesIL4Mode1EJLi1ELi2ELi3EEEvSt5arrayIfXsZT0_EE",
        "_ZN2at6native12_GLOBAL__N_15plainEPf", "_ZN2at6native12_GLOBAL__N_17softmaxIdEEvPT_i",
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_1FESt5arrayIPcLm3EEEEviT0_T1_",
        "_ZN3cub8V_200_NS18DeviceReduceKernelIfLb1ELin3EEEvT_St6vectorIiSaIiEE",
        "_ZN4ns1x6k3rnelEj", "_ZN4ns1xL8internalEl",
        "_ZN7cutlass13device_kernelINS_1PIN2at6native1FEEEEEvT_",
        "_ZN7cutlass7Kernel2INS_1PINS1_IiEEEEEEvNS1_IT_EE", "_ZSt6in_stdi", "_ZSt7in_std2IfEvT_"}) {
    INFO(mangled);
    CHECK(function_base_name(mangled) == base_of_demangled(mangled));
  }
}

TEST_CASE("a name that is not mangled, or broken, is itself") {
  for (const char* name : {"", "triton_poi_fused_add_0", "_Z", "_ZN", "_ZN5ab",
                           "_Z99999999999999999999a", "_ZNS", "_ZS", "_ZL", "Z4axpyv"})
    CHECK(function_base_name(name) == name);
}

TEST_CASE("kernels are chosen by name or expression, in the base that is asked for") {
  const std::string softmax = "_ZN2at6native12_GLOBAL__N_17softmaxIdEEvPT_i";
  const auto chosen = [&](const char* text, KernelNameBase base = KernelNameBase::kFunction) {
    return KernelNames(text, base).contain(softmax);
  };
  CHECK(chosen(""));
  CHECK(chosen("softmax"));
  CHECK_FALSE(chosen("soft"));
  CHECK_FALSE(chosen(softmax.c_str()));
  CHECK(chosen("regex:soft"));
  CHECK(chosen("regex:^soft.a(x|y)$"));
  CHECK_FALSE(chosen("regex:native"));
  CHECK(chosen("regex:6native.*IdE", KernelNameBase::kMangled));
  CHECK(chosen(softmax.c_str(), KernelNameBase::kMangled));
  CHECK_FALSE(chosen("softmax", KernelNameBase::kMangled));
}

TEST_CASE("what other languages of expressions have is not taken for something else") {
  for (const char* text :
       {"gemm", "regex:gemm|conv", R"(regex:a\.b)", R"(regex:\bgemm\b)", "regex:x{2,3}"})
    CHECK(KernelNames::understood(text));
  for (const char* text : {"", "regex:", "regex:(", "regex:[a", R"(regex:\d+)", R"(regex:(a)\1)",
                           "regex:(?i)a", "regex:*+("})
    CHECK_FALSE(KernelNames::understood(text));
  CHECK_FALSE(KernelNames::understood(std::string(2'000, 'a')));
}
