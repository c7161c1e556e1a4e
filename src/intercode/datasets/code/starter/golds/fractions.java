import java.math.BigInteger;
import java.util.Scanner;

public class Main {
    public static void main(String[] arguments) {
        BigInteger above = BigInteger.ZERO, below = BigInteger.ONE;
        var input = new Scanner(System.in);
        while (input.hasNext()) {
            String[] parts = input.next().split("/");
            var a = new BigInteger(parts[0]);
            var b = new BigInteger(parts[1]);
            above = above.multiply(b).add(a.multiply(below));
            below = below.multiply(b);
            var common = above.gcd(below);
            above = above.divide(common);
            below = below.divide(common);
        }
        System.out.println(below.equals(BigInteger.ONE) ? above : above + "/" + below);
    }
}
