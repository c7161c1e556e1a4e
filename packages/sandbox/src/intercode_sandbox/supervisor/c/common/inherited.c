/* What a process inherits. This program begins with the defaults of all of it, so that programs in a
   sandbox do not depend on how their owner was started.

   Some of it stays, because the kernel does not let this user change it (a hard limit that was lowered,
   a higher niceness), or because it says which part of the machine the owner may use: control groups,
   processors and nodes of memory. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#define PR_GET_IO_FLUSHER 58
#endif
#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#endif

#define MOST_SIGNALS 64
#define TIMER_SLACK 50000  /* nanoseconds, the kernel's default */
#define STACK_SIZE (8UL << 20)
#define MOST_FILES (1UL << 16)  /* if the kernel does not say how many a process may have open */
#define CORE_FILTER "0x33"  /* the kernel's default */
#define OTHER_MISFEATURES 3  /* kinds of speculative execution that a process may turn off */
#define RESET_UTILIZATION 0x60  /* of sched_setattr: both bounds, which -1 resets */

/* ---------------------------------------------------------------------- signals */
static void reset_signals(void) {
    /* the C library keeps two of them for itself, and so does not change them */
    const struct { unsigned long handler, flags, restorer, mask; } by_default = {0};
    const uint64_t none = 0;
    for (int number = 1; number <= MOST_SIGNALS; number++)
        syscall(SYS_rt_sigaction, (long)number, &by_default, NULL, sizeof by_default.mask);
    syscall(SYS_rt_sigprocmask, (long)SIG_SETMASK, &none, NULL, sizeof none);
}

/* ----------------------------------------------------------------------- limits */
static rlim_t most_files(void) {
    char text[32];
    read_text(AT_FDCWD, "/proc/sys/fs/nr_open", text, sizeof text);
    rlim_t found = strtoul(text, NULL, 10);
    return found ? found : MOST_FILES;
}

/* Raise a limit as far as this user may. */
static void raise_limit(int resource, rlim_t soft, rlim_t hard) {
    struct rlimit now;
    struct rlimit wanted = {soft, hard};
    if (!setrlimit(resource, &wanted) || getrlimit(resource, &now)) return;
    now.rlim_cur = soft < now.rlim_max ? soft : now.rlim_max;
    setrlimit(resource, &now);
}

/* The supervisor lowers some of them to those of its sandbox. Others the kernel compares with the sum
   over all sandboxes, so they must be high for the launcher. */
static void reset_limits(void) {
    for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
        switch (resource) {
        case RLIMIT_NICE:
        case RLIMIT_RTPRIO:
            raise_limit(resource, 0, 0);
            break;
        case RLIMIT_CORE:
            raise_limit(resource, 0, RLIM_INFINITY);
            break;
        case RLIMIT_STACK:
            raise_limit(resource, STACK_SIZE, RLIM_INFINITY);
            break;
        case RLIMIT_NOFILE: {
            rlim_t most = most_files();
            raise_limit(resource, most < MOST_FILES ? most : MOST_FILES, most);
            break;
        }
        default:
            raise_limit(resource, RLIM_INFINITY, RLIM_INFINITY);
        }
    }
}

/* --------------------------------------------------------------------- priority */
static void reset_priority(void) {
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
        uint32_t least, most;
    } ordinary = {.size = sizeof ordinary, .policy = SCHED_OTHER}, unbounded;
    syscall(SYS_sched_setattr, 0L, &ordinary, 0L);
    ordinary.nice = getpriority(PRIO_PROCESS, 0);  /* only root may lower it */
    syscall(SYS_sched_setattr, 0L, &ordinary, 0L);
    unbounded = ordinary;
    unbounded.flags = RESET_UTILIZATION;
    unbounded.least = unbounded.most = (uint32_t)-1;
    syscall(SYS_sched_setattr, 0L, &unbounded, 0L);
    syscall(SYS_ioprio_set, 1L, 0L, 0L);
    write_text("/proc/self/oom_score_adj", "0");
}

/* ------------------------------------------------------------ settings of prctl */
static void reset_settings(void) {
    prctl(PR_SET_TIMERSLACK, TIMER_SLACK, 0, 0, 0);
    prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
    prctl(PR_SET_MEMORY_MERGE, 0, 0, 0, 0);
    prctl(PR_MCE_KILL, PR_MCE_KILL_CLEAR, 0, 0, 0);
    prctl(PR_SET_SECUREBITS, 0, 0, 0, 0);
    if (prctl(PR_GET_IO_FLUSHER, 0, 0, 0, 0) == 1) prctl(PR_SET_IO_FLUSHER, 0, 0, 0, 0);
#ifdef __x86_64__
    prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
#endif
    for (long kind = 0; kind < OTHER_MISFEATURES; kind++) {
        long state = prctl(PR_GET_SPECULATION_CTRL, kind, 0, 0, 0);
        if (state > 0 && state & PR_SPEC_PRCTL && state & PR_SPEC_DISABLE)
            prctl(PR_SET_SPECULATION_CTRL, kind, PR_SPEC_ENABLE, 0, 0);
    }
    write_text("/proc/self/coredump_filter", CORE_FILTER);
}

void reset_inherited(void) {
    reset_signals();
    reset_limits();
    reset_priority();
    reset_settings();
    personality(PER_LINUX);
    umask(022);
    clear_error();
    errno = 0;
}

/* Lose the capabilities that programs would inherit without being root. */
int drop_inheritable(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capget, &header, data)) return fail("capget");
    data[0].inheritable = data[1].inheritable = 0;
    return syscall(SYS_capset, &header, data) ? fail("capset") : 0;
}

/* Execute a program that starts supervisors, with the defaults. */
void start_program(char **arguments) {
    execv(arguments[0], arguments);
    _exit(127);
}
