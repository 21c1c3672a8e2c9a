CREATE TABLE account (name text PRIMARY KEY, balance integer NOT NULL);
--> statement-breakpoint
SELECT pg_sleep(0.2);
--> statement-breakpoint
INSERT INTO account VALUES ('Ada', 10);
