/** True once the handlers are installed: tests run the program several times in one process. */
let isWatched = false

/**
 * Sends SIGTERM to this process if the process that reads its standard output ends first, as with
 * `| head`: a command that prints exits immediately, and a command that runs until a signal stops
 * gracefully. Without this, Node.js would print a stack trace.
 */
export function stopOnBrokenPipe(): void {
  if (isWatched) return
  isWatched = true
  const stop = (error: NodeJS.ErrnoException): void => {
    if (error.code !== 'EPIPE') throw error
    process.kill(process.pid, 'SIGTERM')
  }
  process.stdout.once('error', stop).on('error', () => undefined)
  process.stderr.on('error', () => undefined)
}
