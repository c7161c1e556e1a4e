/* Channels into the sandbox for the owner: terminals, connections to servers, and ports. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Return the master side of a new terminal of the sandbox. */
int create_terminal(void) {
    int unlocked = 0;
    int master = open_in_root(sandbox.root, "/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK, 0);
    if (master < 0) return fail("/dev/pts/ptmx");
    if (!ioctl(master, TIOCSPTLCK, &unlocked) && !fcntl(master, F_SETFL, O_RDWR)) return master;
    int code = errno;
    close(master);
    errno = code;
    return fail("/dev/pts/ptmx");
}

static int connect_address(int family, const void *address, socklen_t length) {
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    if (!connect(fd, address, length) || errno == EINPROGRESS) return fd;
    int code = errno;
    close(fd);
    errno = code;
    return -1;
}

/* Connect to a Unix socket at a path, or to a port of an address of the sandbox, by default its
   loopback device. Return the connection, which may not be established yet. */
int connect_to_server(const char *path, const char *host, long long port) {
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 address6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    if (*path) {
        if (strlen(path) >= sizeof local.sun_path) return errno = ENAMETOOLONG, -1;
        strcpy(local.sun_path, path);
        return connect_address(AF_UNIX, &local, sizeof local);
    }
    if (port < 1 || port > 65535) return errno = EINVAL, -1;
    address.sin_port = address6.sin6_port = htons((uint16_t)port);
    if (*host && inet_pton(AF_INET, host, &address.sin_addr) != 1) return errno = EINVAL, -1;
    int fd = connect_address(AF_INET, &address, sizeof address);
    if (fd >= 0 || errno != ECONNREFUSED || *host) return fd;
    fd = connect_address(AF_INET6, &address6, sizeof address6);
    if (fd < 0) errno = ECONNREFUSED;  /* also where there is no IPv6 */
    return fd;
}

/* Open a port of the sandbox's loopback device, 0 for a free one. Return the listening socket. */
int listen_at_port(long long port) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (port < 0 || port > 65535) return errno = EINVAL, -1;
    address.sin_port = htons((uint16_t)port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (!bind(fd, (struct sockaddr *)&address, sizeof address) && !listen(fd, SOMAXCONN)) return fd;
    int code = errno;
    close(fd);
    errno = code;
    return -1;
}
