#include <injector/process/command_line.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>
#include <utility>

namespace flopinj {
namespace {

constexpr std::string_view kHidden = "[hidden]";
constexpr std::string_view kSecretWords[] = {"password",    "passwd", "passphrase", "pwd",
                                             "secret",      "token",  "credential", "auth",
                                             "credentials", "apikey"};
constexpr std::string_view kWordsBeforeKey[] = {"api", "access", "private", "secret", "ssh"};

template <size_t N>
bool one_of(std::string_view word, const std::string_view (&words)[N]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// In lower case: "--hfToken" as "hf", "token".
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  bool after_capital = true;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool capital = std::isupper(byte) != 0;
    const bool parts = std::isalnum(byte) == 0;
    if (parts || (capital && !std::exchange(after_capital, capital))) words.emplace_back();
    if (!parts) words.back() += static_cast<char>(std::tolower(byte));
    after_capital = capital;
  }
  return words;
}

bool names_secret(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  for (size_t i = 0; i < words.size(); ++i)
    if (one_of(words[i], kSecretWords) ||
        (i > 0 && words[i] == "key" && one_of(words[i - 1], kWordsBeforeKey)))
      return true;
  return false;
}

// "scheme://user:password@host".
void hide_in_url(std::string& word) {
  const size_t scheme = word.find("://");
  if (scheme == std::string::npos) return;
  const size_t begins = scheme + 3;
  const size_t at = word.find('@', begins);
  const size_t colon = word.find(':', begins);
  if (at == std::string::npos || colon > at || word.find('/', begins) < at) return;
  word.replace(colon + 1, at - colon - 1, kHidden);
}

}  // namespace

void hide_secrets(std::vector<std::string>& command_line) {
  bool next = false;  // this word is the value of the option before it
  for (std::string& word : command_line) {
    const bool option = word.starts_with('-');
    if (std::exchange(next, false) && !word.starts_with("--")) {
      word = kHidden;
      continue;
    }
    const size_t equals = word.find('=');
    if (!names_secret(std::string_view(word).substr(0, equals))) {
      hide_in_url(word);
    } else if (equals != std::string::npos) {
      word.replace(equals + 1, std::string::npos, kHidden);
    } else {
      next = option;
    }
  }
}

}  // namespace flopinj
