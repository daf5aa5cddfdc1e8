module detent_tests

go 1.19

require detent v0.1.0

replace detent => ../../../clients/go
