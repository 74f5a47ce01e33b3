node.AS N1 64500 origins
node.AS N2 64501 refinement
node.AS N3 64501 refinement
node.AS N4 64502 last_hop
