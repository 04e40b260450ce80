module example.com/trees

go 1.26.0
