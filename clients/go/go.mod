module detent

go 1.19
