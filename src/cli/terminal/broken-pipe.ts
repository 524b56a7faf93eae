/** The program may run several times in one process, as in tests. */
let isWatched = false

/**
 * Stops the program as SIGTERM does when the reader of its output ends first, as `| head` does: a
 * verb that prints ends at once, and one that runs controllers stops them in order. Without this,
 * Node would print a stack.
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
