/* The process of a pod's sandbox: holds the namespaces that the containers of the pod share, and ends on SIGTERM. As process 1 of
 * its namespace, it also reaps the processes whose parents have ended. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

int main(void) {
  sigset_t signals;

  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGCHLD);
  /* The kernel keeps a blocked signal for process 1, and drops others that have no handler. */
  if (sigprocmask(SIG_BLOCK, &signals, NULL) != 0)
    return 1;
  for (;;) {
    int received = sigwaitinfo(&signals, NULL);

    if (received == SIGTERM || received == SIGINT)
      return 0;
    if (received == -1 && errno != EINTR)
      return 1;
    while (waitpid(-1, NULL, WNOHANG) > 0)
      ;
  }
}
