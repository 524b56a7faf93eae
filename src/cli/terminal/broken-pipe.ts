/** The program may be run again in one process, as tests do. */
let isWatched = false

/**
 * Stops where the reader of the output ends first, as `| head` does. The program then stops as on
 * SIGTERM: a verb that prints ends at once, and one that keeps controllers stops them in order.
 * Without this, Node ends it with a stack on the screen.
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
