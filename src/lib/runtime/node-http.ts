// Loads `node:http` with `getBuiltinModule`. An import statement would read all exports of the
// module, and one of them loads the whole client behind `fetch`, which takes a quarter of a
// command's processor time and two megabytes.
export const { Agent, createServer, request, STATUS_CODES } = process.getBuiltinModule('node:http')
