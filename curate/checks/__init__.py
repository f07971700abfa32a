"""The checks that come with curate: one file each, discovered by `curate.check.catalogue`, imported by nobody."""
