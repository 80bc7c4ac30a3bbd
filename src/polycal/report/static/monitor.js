// The page works without scripts, except for pictures and the theme button.
"use strict";

drawAll();
