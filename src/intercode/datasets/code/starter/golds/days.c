#include <stdio.h>

static int leap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

static int days_of(int year, int month) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && leap(year));
}

/* Days since the first of January of the year 1; -1 for a date that does not exist. */
static long number(int year, int month, int day) {
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > days_of(year, month)) return -1;
    long before = year - 1, total = before * 365 + before / 4 - before / 100 + before / 400;
    for (int m = 1; m < month; m++) total += days_of(year, m);
    return total + day - 1;
}

int main(void) {
    int y, m, d, z, n, e;
    while (scanf("%d-%d-%d %d-%d-%d", &y, &m, &d, &z, &n, &e) == 6) {
        long first = number(y, m, d), second = number(z, n, e);
        if (first < 0 || second < 0) puts("no date");
        else printf("%ld\n", second - first);
    }
    return 0;
}
