import unittest

from tillroll.basket import Basket


class BasketTest(unittest.TestCase):
    def setUp(self) -> None:
        self.basket = Basket()
        self.basket.add("tea", price_cents=333, quantity=3)

    def test_the_total_is_price_times_quantity(self) -> None:
        self.assertEqual(self.basket.total_cents(), 999)

    def test_an_empty_basket_costs_nothing(self) -> None:
        self.assertEqual(Basket().total_cents(), 0)

    def test_a_quantity_below_one_is_refused(self) -> None:
        with self.assertRaises(ValueError):
            self.basket.add("sugar", price_cents=99, quantity=0)

    def test_a_discount_is_taken_from_the_total(self) -> None:
        self.assertEqual(self.basket.total_cents(discount_percent=10), 899)


if __name__ == "__main__":
    unittest.main()
