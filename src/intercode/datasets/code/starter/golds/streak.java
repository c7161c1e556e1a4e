import java.time.LocalDate;
import java.util.Scanner;
import java.util.TreeSet;

public class Main {
    public static void main(String[] arguments) {
        var days = new TreeSet<LocalDate>();
        var input = new Scanner(System.in);
        while (input.hasNext()) days.add(LocalDate.parse(input.next()));
        LocalDate best = null, first = null, last = null;
        int longest = 0, length = 0;
        for (LocalDate day : days) {
            if (last == null || !last.plusDays(1).equals(day)) {
                first = day;
                length = 0;
            }
            last = day;
            if (++length > longest) {
                longest = length;
                best = first;
            }
        }
        System.out.println(best == null ? "none" : longest + " " + best);
    }
}
