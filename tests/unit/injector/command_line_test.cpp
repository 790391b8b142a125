// The words of a command line that a trace may hold.
#include <injector/process/command_line.h>

#include "catch.h"

namespace {

using Words = std::vector<std::string>;

Words hidden(Words words) {
  flopinj::hide_secrets(words);
  return words;
}
const std::string kHidden = "[hidden]";

}  // namespace

TEST_CASE("values of options that are secrets are hidden") {
  CHECK(hidden({"train", "--hf-token", "abc", "x"}) == Words{"train", "--hf-token", kHidden, "x"});
  CHECK(hidden({"--password=a=b"}) == Words{"--password=" + kHidden});
  CHECK(hidden({"-api_key", "abc"}) == Words{"-api_key", kHidden});
  CHECK(hidden({"--wandbApiKey=abc"}) == Words{"--wandbApiKey=" + kHidden});
  CHECK(hidden({"env", "DB_PASSWORD=abc", "run"}) == Words{"env", "DB_PASSWORD=" + kHidden, "run"});
  CHECK(hidden({"--auth", "-x7"}) == Words{"--auth", kHidden});
  CHECK(hidden({"--secret", "--verbose"}) == Words{"--secret", "--verbose"});
  CHECK(hidden({"--url", "s3://me:abc@host/x"}) ==
        Words{"--url", "s3://me:" + kHidden + "@host/x"});
}

TEST_CASE("other words stay as they are") {
  const Words plain = {
      "train.py", "--max-tokens", "4096",        "--tokenizer=gpt2", "--key",    "k",
      "--lr=0.1", "token",        "https://a/b", "http://h:80/a@b",  "--author", "me"};
  CHECK(hidden(plain) == plain);
}
