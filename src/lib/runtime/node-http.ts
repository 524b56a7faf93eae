// An import statement of `node:http` reads all of its exports. One of them loads the whole client
// behind `fetch`: a quarter of a command's processor time, and two megabytes. `getBuiltinModule`
// returns the same module without reading its exports.
export const { Agent, createServer, request, STATUS_CODES } = process.getBuiltinModule('node:http')
