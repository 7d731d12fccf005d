// Follow a clicked point of a figure to its run. Points carry paths of this site only.
window.dash_clientside = Object.assign({}, window.dash_clientside, {
  perfci: {
    open_point(click) {
      const target = click?.points?.[0]?.customdata;
      const leads = typeof target === "string" && target.startsWith("/run/");
      return leads ? target : window.dash_clientside.no_update;
    },
  },
});
