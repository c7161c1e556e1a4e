/* Gives a sandbox whose network has rules a gateway: a second network namespace, in which nothing
   runs, joined to that of the sandbox by a pair of devices. The gateway takes every address of its
   routes for its own, and has no way on. Sockets of the owner listen in it; they were opened there
   before this process left it, and nothing in the sandbox can enter it or change it, because its
   programs have no right over networks and its seccomp filter refuses setns. */

#define _GNU_SOURCE
#include "supervisor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOPBACK 1
#define DEVICE 100  /* the number of either end; a new namespace may have some low ones */
#define DNS_PORT 53
#define GATEWAY "198.18.0.1"
#define SANDBOX "198.18.0.2"
#define LINK_PREFIX 30
#define BACKLOG 128
#define NO_ADDRESS 1  /* IN6_ADDR_GEN_MODE_NONE */

struct order {
    struct nlmsghdr header;
    char body[512];
};

static int sockets[MOST_FDS];
static size_t count;

static void *begin(struct order *order, uint16_t type, uint16_t flags, size_t size) {
    memset(order, 0, sizeof *order);
    order->header = (struct nlmsghdr){.nlmsg_len = (uint32_t)NLMSG_LENGTH(size), .nlmsg_type = type,
                                      .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags)};
    return NLMSG_DATA(&order->header);
}

static struct rtattr *add(struct order *order, uint16_t type, const void *data, size_t size) {
    struct rtattr *attribute = (struct rtattr *)((char *)order + order->header.nlmsg_len);
    attribute->rta_type = type;
    attribute->rta_len = (uint16_t)RTA_LENGTH(size);
    if (size) memcpy(RTA_DATA(attribute), data, size);
    order->header.nlmsg_len += (uint32_t)RTA_SPACE(size);
    return attribute;
}

static void finish(const struct order *order, struct rtattr *nested) {
    nested->rta_len = (uint16_t)((const char *)order + order->header.nlmsg_len - (char *)nested);
}

/* Send an order to the network namespace of the socket. */
static int give(int netlink, const struct order *order, const char *what) {
    struct { struct nlmsghdr header; struct nlmsgerr error; char rest[1024]; } answer;
    if (send(netlink, order, order->header.nlmsg_len, 0) < 0
        || recv(netlink, &answer, sizeof answer, 0) < (ssize_t)NLMSG_LENGTH(sizeof answer.error))
        return fail("the network of the sandbox: %s", what);
    errno = -answer.error.error;
    return errno ? fail("the network of the sandbox: %s", what) : 0;
}

static int raise_device(int netlink, int device) {
    struct order order;
    struct ifinfomsg *link = begin(&order, RTM_NEWLINK, 0, sizeof *link);
    uint8_t mode = NO_ADDRESS;
    link->ifi_index = device;
    struct rtattr *families = add(&order, IFLA_AF_SPEC, NULL, 0);
    struct rtattr *family = add(&order, AF_INET6, NULL, 0);
    add(&order, IFLA_INET6_ADDR_GEN_MODE, &mode, sizeof mode);
    finish(&order, family);
    finish(&order, families);
    if (device == DEVICE && give(netlink, &order, "IPv6")) clear_error();  /* there is none */
    link = begin(&order, RTM_NEWLINK, 0, sizeof *link);
    link->ifi_index = device;
    link->ifi_flags = link->ifi_change = IFF_UP;
    return give(netlink, &order, "a device");
}

static int set_address(int netlink, const char *text) {
    struct order order;
    struct in_addr address;
    struct ifaddrmsg *body = begin(&order, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sizeof *body);
    inet_pton(AF_INET, text, &address);
    *body = (struct ifaddrmsg){.ifa_family = AF_INET, .ifa_prefixlen = LINK_PREFIX,
                               .ifa_index = DEVICE};
    add(&order, IFA_LOCAL, &address, sizeof address);
    add(&order, IFA_ADDRESS, &address, sizeof address);
    return give(netlink, &order, "an address");
}

/* Make the gateway own the addresses of the ranges, or let the sandbox send to them through it. */
static int add_routes(int netlink, const struct json *ranges, bool owned) {
    struct in_addr address, gateway;
    int device = LOOPBACK;
    inet_pton(AF_INET, GATEWAY, &gateway);
    for (const struct json *range = ranges->first; range; range = range->next) {
        struct order order;
        struct rtmsg *route = begin(&order, RTM_NEWROUTE, NLM_F_CREATE, sizeof *route);
        if (inet_pton(AF_INET, json_text(range, "address"), &address) != 1)
            return errno = EINVAL, fail("the network of the sandbox: a range");
        *route = (struct rtmsg){.rtm_family = AF_INET,
                                .rtm_dst_len = (uint8_t)json_number(range, "prefix"),
                                .rtm_table = owned ? RT_TABLE_LOCAL : RT_TABLE_MAIN,
                                .rtm_protocol = RTPROT_STATIC,
                                .rtm_scope = owned ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
                                .rtm_type = owned ? RTN_LOCAL : RTN_UNICAST};
        add(&order, RTA_DST, &address, sizeof address);
        if (owned) add(&order, RTA_OIF, &device, sizeof device);
        else add(&order, RTA_GATEWAY, &gateway, sizeof gateway);
        if (give(netlink, &order, "a route")) return -1;
    }
    return 0;
}

static int join(int netlink, int gateway_namespace) {
    struct order order;
    struct ifinfomsg *link = begin(&order, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof *link);
    struct ifinfomsg other = {.ifi_index = DEVICE};
    link->ifi_index = DEVICE;
    add(&order, IFLA_IFNAME, "eth0", sizeof "eth0");
    struct rtattr *info = add(&order, IFLA_LINKINFO, NULL, 0);
    add(&order, IFLA_INFO_KIND, "veth", sizeof "veth" - 1);
    struct rtattr *data = add(&order, IFLA_INFO_DATA, NULL, 0);
    struct rtattr *peer = add(&order, VETH_INFO_PEER, &other, sizeof other);
    add(&order, IFLA_IFNAME, "gateway", sizeof "gateway");
    add(&order, IFLA_NET_NS_FD, &gateway_namespace, sizeof gateway_namespace);
    finish(&order, peer);
    finish(&order, data);
    finish(&order, info);
    return give(netlink, &order, "a pair of devices (veth)");
}

static int open_socket(int type, uint16_t port) {
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return fail("socket");
    sockets[count++] = fd;
    if (!port) return 0;
    if (bind(fd, (const struct sockaddr *)&address, sizeof address)
        || (type == SOCK_STREAM && listen(fd, BACKLOG)))
        return fail("the network of the sandbox: port %u", port);
    return 0;
}

static int open_netlink(void) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    return fd < 0 ? fail("netlink") : fd;
}

/* Leave the current network namespace to the gateway, and enter a new one for the sandbox. The owner
   binds the unbound sockets when it needs them, because no socket can be opened there later. */
int open_gateway(const struct json *gateway) {
    const struct json *ports = json_get(gateway, "ports"), *ranges = json_get(gateway, "ranges");
    long long unbound = json_number(gateway, "unbound");
    if (!ports || !ranges || unbound < 0 || (long long)ports->length + unbound >= MOST_FDS)
        return errno = EINVAL, fail("gateway");
    int outer = open_netlink(), place = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (outer < 0 || place < 0) return fail("/proc/self/ns/net");
    if (open_socket(SOCK_DGRAM, DNS_PORT)) return -1;
    for (const struct json *port = ports->first; port; port = port->next)
        if (open_socket(SOCK_STREAM, (uint16_t)port->number)) return -1;
    while (unbound--)
        if (open_socket(SOCK_STREAM, 0)) return -1;
    /* an answer to a ping would look as if it came from the host that a name stands for */
    if (write_text("/proc/sys/net/ipv4/icmp_echo_ignore_all", "1")) clear_error();
    if (sys_unshare(CLONE_NEWNET)) return -1;
    int inner = open_netlink();
    if (inner < 0 || join(inner, place)) return -1;
    if (raise_device(outer, LOOPBACK) || set_address(outer, GATEWAY) || raise_device(outer, DEVICE)
        || add_routes(outer, ranges, true))
        return -1;
    if (set_address(inner, SANDBOX) || raise_device(inner, DEVICE)
        || add_routes(inner, ranges, false))
        return -1;
    close(inner);
    close(outer);
    close(place);
    return 0;
}

/* Return a descriptor of a socket of the gateway: the first is that of DNS, then those of the ports,
   then the unbound ones. */
int gateway_socket(long long number) {
    if (number < 0 || (size_t)number >= count) return errno = EINVAL, fail("there is no such port");
    return fcntl(sockets[number], F_DUPFD_CLOEXEC, 0);
}
