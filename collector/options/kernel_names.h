// Kernels chosen by their names (--kernel-name): NAME, or regex:EXPRESSION, as in ncu.
//
// NAME is the whole name; the expression, POSIX extended, is looked for anywhere in it. Names are
// those of the base: the function's own, without namespaces, template arguments and parameters, or
// the mangled one.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace flopinj {

enum class KernelNameBase : uint8_t { kFunction, kMangled };

// "void at::native::vectorized<4>(float*)", mangled, is vectorized. What is not mangled is itself.
std::string_view function_base_name(std::string_view mangled) noexcept;

class KernelNames {
 public:
  // The text has to be understood; an empty one chooses all.
  explicit KernelNames(std::string_view text = {}, KernelNameBase = KernelNameBase::kFunction);
  ~KernelNames();
  KernelNames(KernelNames&&) noexcept;

  // An expression that reads otherwise elsewhere (\d, back-references, (?...) is not understood.
  static bool understood(std::string_view text);

  bool contain(const std::string& mangled_name) const;  // thread-safe; may allocate

 private:
  struct Expression;
  KernelNameBase base_;
  std::string name_;  // empty: all, or those of the expression
  std::unique_ptr<const Expression> expression_;
};

}  // namespace flopinj
