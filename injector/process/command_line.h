// What of a command line a trace may hold. Traces are sent to others.
#pragma once
#include <string>
#include <vector>

namespace flopinj {

// Puts "[hidden]" in place of what looks like a secret:
//   --hf-token abc, --password=abc, DB_PASSWORD=abc   the value, where a word of the name is
//       password, passwd, passphrase, pwd, secret, token, credential, credentials, auth, apikey, or
//       key after api, access, private, secret or ssh. Words are parted by - _ . and by a capital
//       letter: --max-tokens and --tokenizer are no such names.
//   https://user:abc@host                             the password in a URL
void hide_secrets(std::vector<std::string>& command_line);

}  // namespace flopinj
