// Says what a recorded program cannot say itself: that nothing was recorded, or that a process was
// ended before it could close its trace.
//
// `flopinj run` becomes the program, so that process id, parent, process group, signals and exit
// code are as without us. So the watcher is no parent of the program. It is a process of its own
// session, no child of the program, and waits for the program's end on a pidfd. The processes of
// the run say to a socket what they record (common/run_notice.h). Where all has been said it ends
// without a word.
#pragma once
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "driver.h"
#include "run_notice.h"

namespace flopinj {

// What the processes of a run have said.
class RunRecord {
 public:
  // `program`: the first word of the run's command. `simulated`: they have the simulated GPU.
  // `driver`: whether this machine has a driver; asked where nothing was recorded.
  explicit RunRecord(std::string program = {}, bool simulated = false,
                     bool (*driver)() = has_driver)
      : program_(std::move(program)), simulated_(simulated), driver_(driver) {}
  void take(pid_t process, const RunNotice&);
  // The lines for the user when the program has ended. `alive`: whether a process still runs.
  // Without `cut` nothing of traces that were not closed, or could not be written to the end.
  std::vector<std::string> last_words(bool (*alive)(pid_t), bool cut = true) const;
  // Whether a process has said that it records.
  bool any() const { return !traces_.empty(); }
  // The traces that no process writes any more.
  std::vector<std::string> traces(bool (*alive)(pid_t)) const;

 private:
  struct Trace {
    pid_t process;
    std::string name;
    bool ended;
    bool cut;  // and ended early
  };
  std::string why_nothing() const;

  std::string program_;
  bool simulated_;
  bool (*driver_)();
  std::vector<Trace> traces_;
  bool refused_ = false, waited_ = false;
};

// Where the processes of a run say what they record.
class RunSocket {
 public:
  RunSocket();  // a name of its own
  ~RunSocket();
  RunSocket(const RunSocket&) = delete;
  RunSocket& operator=(const RunSocket&) = delete;
  // As run_notice.h has it, with the secret; empty where there is none.
  const std::string& name() const { return name_; }
  int descriptor() const { return fd_; }
  // Everything that has come.
  void receive(RunRecord& record);
  // Until the program has ended, and its processes have said what they do together with it.
  // `program_fd`: its pidfd, or negative where the kernel has none.
  void receive_to_the_end(pid_t program, int program_fd, RunRecord& record);

 private:
  std::string name_;
  int fd_ = -1;
};

// " a.pb b.pb", as words for a shell; of many the first ones.
std::string names_text(const std::vector<std::string>& names);

// Opens the socket, and starts the watcher of this process, which becomes the program of this
// name. The name of the socket; empty where there is no watcher, and the program runs all the same.
std::string start_watcher(const std::string& name, bool simulated);

}  // namespace flopinj
