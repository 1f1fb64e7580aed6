from thereexists.cli import main

main()
