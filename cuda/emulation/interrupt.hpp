// Ctrl-C during a launch.
//
// Python's handler only takes note of the signal, and raises KeyboardInterrupt when the launch has
// returned, which may be a minute later. So the launch takes note of it, too, and ends at once.
#pragma once

#include <csignal>
#include <cstring>

namespace simt {

inline volatile std::sig_atomic_t interrupted = 0;
inline struct sigaction heard_before;

inline void hear_interrupt(int signal) {
  interrupted = 1;
  heard_before.sa_handler(signal);
}

// Hears the signal as long as it lives, if it is to and somebody else does.
class Interrupts {
 public:
  explicit Interrupts(bool hears) {
    interrupted = 0;
    if (!hears || sigaction(SIGINT, nullptr, &heard_before)) return;
    const bool plain = !(heard_before.sa_flags & SA_SIGINFO);
    if (!plain || heard_before.sa_handler == SIG_DFL || heard_before.sa_handler == SIG_IGN) return;
    struct sigaction mine = heard_before;
    mine.sa_handler = hear_interrupt;
    hears_ = sigaction(SIGINT, &mine, nullptr) == 0;
  }
  ~Interrupts() {
    if (hears_) sigaction(SIGINT, &heard_before, nullptr);
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

 private:
  bool hears_ = false;
};

}  // namespace simt
