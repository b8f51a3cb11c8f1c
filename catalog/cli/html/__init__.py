"""Results as pages for a browser: one self-contained file each, without scripts and without requests.

- `page`: the frame of a page, and the escaping of texts
- `stats`: the page of `catalog debug stats`
- `upgrade_check`: the page of `catalog debug upgrade-check`
- `schema_diff`: the types of two versions side by side
- `charts`: charts as SVG
- `output_file`: the file: tested before long work, replaced as a whole after it
"""
