/* Stops another process of the sandbox with ptrace(2) and makes it issue system calls.

   Supports only x86-64, because it names that machine's registers. On other machines checkpoints
   fail with ENOSYS. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NT_PRSTATUS 1
#define NT_X86_XSTATE 0x202

#ifdef __x86_64__

static long ptrace_keyed(long what, pid_t pid, void *address, void *data) {
    return syscall(SYS_ptrace, what, (long)pid, address, data, 0L, filter_key);
}

/* Wait until the process has stopped. Signals that arrive in the meantime are dropped. */
static int wait_stopped(struct tracee *p) {
    int status;
    for (;;) {
        if (waitpid(p->pid, &status, __WALL) != p->pid) return fail("waitpid");
        if (WIFSTOPPED(status)) return WSTOPSIG(status);
        if (WIFEXITED(status) || WIFSIGNALED(status))
            return errno = ESRCH, fail("the process has ended");
    }
}

int stop_tracee(struct tracee *p, pid_t pid, int inner_pid) {
    char name[32];
    *p = (struct tracee){.pid = pid, .inner_pid = inner_pid, .memory_fd = -1};
    if (ptrace_keyed(PTRACE_SEIZE, pid, NULL, NULL)) return fail("ptrace");
    if (ptrace_keyed(PTRACE_INTERRUPT, pid, NULL, NULL) || wait_stopped(p) < 0) return -1;
    snprintf(name, sizeof name, "/proc/%d/mem", inner_pid);
    p->memory_fd = open(name, O_RDWR | O_CLOEXEC);
    if (p->memory_fd < 0 || get_registers(p, &p->saved_registers)) {
        int code = errno;
        release_tracee(p);
        errno = code;
        return fail("%s", name);
    }
    return 0;
}

void release_tracee(struct tracee *p) {
    if (p->memory_fd >= 0) close(p->memory_fd);
    p->memory_fd = -1;
    ptrace_keyed(PTRACE_DETACH, p->pid, NULL, NULL);
}

int get_registers(struct tracee *p, struct user_regs_struct *registers) {
    struct iovec vector = {registers, sizeof *registers};
    return ptrace_keyed(PTRACE_GETREGSET, p->pid, (void *)NT_PRSTATUS, &vector) ? fail("registers")
        : 0;
}

int set_registers(struct tracee *p, const struct user_regs_struct *registers) {
    struct iovec vector = {(void *)registers, sizeof *registers};
    return ptrace_keyed(PTRACE_SETREGSET, p->pid, (void *)NT_PRSTATUS, &vector) ? fail("registers")
        : 0;
}

int get_fpu_state(struct tracee *p, void *to, size_t *length) {
    struct iovec vector = {to, *length};
    if (ptrace_keyed(PTRACE_GETREGSET, p->pid, (void *)NT_X86_XSTATE, &vector))
        return fail("registers");
    *length = vector.iov_len;
    return 0;
}

int set_fpu_state(struct tracee *p, const void *from, size_t length) {
    struct iovec vector = {(void *)from, length};
    return ptrace_keyed(PTRACE_SETREGSET, p->pid, (void *)NT_X86_XSTATE, &vector)
        ? fail("registers") : 0;
}

int get_signal_mask(struct tracee *p, uint64_t *mask) {
    return ptrace_keyed(PTRACE_GETSIGMASK, p->pid, (void *)sizeof *mask, mask) ? fail("signals")
        : 0;
}

int set_signal_mask(struct tracee *p, const uint64_t *mask) {
    return ptrace_keyed(PTRACE_SETSIGMASK, p->pid, (void *)sizeof *mask, (void *)mask)
        ? fail("signals")
                                                                                : 0;
}

/* Read the area that the C library has registered for restartable sequences. It stays empty if the
   kernel does not report it. */
void get_rseq(struct tracee *p, struct rseq_area *area) {
    memset(area, 0, sizeof *area);
    ptrace_keyed(PTRACE_GET_RSEQ_CONFIGURATION, p->pid, (void *)sizeof *area, area);
}

/* Make the process issue a system call. `p->syscall_address` is the address of a syscall
   instruction in its memory. */
long remote_syscall(struct tracee *p, long number, long a, long b, long c, long d, long e, long f) {
    struct user_regs_struct registers = p->saved_registers;
    registers.rip = p->syscall_address;
    registers.rax = (unsigned long)number;
    registers.orig_rax = (unsigned long)-1;
    registers.rdi = (unsigned long)a;
    registers.rsi = (unsigned long)b;
    registers.rdx = (unsigned long)c;
    registers.r10 = (unsigned long)d;
    registers.r8 = (unsigned long)e;
    registers.r9 = (unsigned long)f;
    if (set_registers(p, &registers)) return -1;
    if (ptrace_keyed(PTRACE_SINGLESTEP, p->pid, NULL, NULL)) return fail("ptrace");
    int signal = wait_stopped(p);
    if (signal < 0) return -1;
    if (signal != SIGTRAP) return errno = EINTR, fail("signal %d", signal);
    if (get_registers(p, &registers)) return -1;
    long result = (long)registers.rax;
    if (result < 0 && result > -4096) return errno = (int)-result, fail("call %ld", number);
    return result;
}

#endif
