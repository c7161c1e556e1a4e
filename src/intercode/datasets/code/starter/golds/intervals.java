import java.util.ArrayList;
import java.util.Comparator;
import java.util.Scanner;

public class Main {
    public static void main(String[] arguments) {
        var all = new ArrayList<long[]>();
        var input = new Scanner(System.in);
        while (input.hasNextLong()) all.add(new long[] {input.nextLong(), input.nextLong()});
        all.sort(Comparator.comparingLong(pair -> pair[0]));
        var joined = new ArrayList<long[]>();
        long gaps = 0;
        for (long[] pair : all) {
            long[] last = joined.isEmpty() ? null : joined.get(joined.size() - 1);
            if (last != null && pair[0] <= last[1]) {
                last[1] = Math.max(last[1], pair[1]);
            } else {
                if (last != null) gaps += pair[0] - last[1];
                joined.add(pair);
            }
        }
        for (long[] pair : joined) System.out.println(pair[0] + " " + pair[1]);
        System.out.println("gaps " + gaps);
    }
}
