UPDATE account SET balance = balance + 1;
