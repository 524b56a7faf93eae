/** Makes the browser save a string as a file. */
export function downloadText(
  fileName: string,
  text: string,
  type = 'application/octet-stream',
): void {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = fileName.replace(/[^A-Za-z0-9._-]/g, '_')
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 1_000)
}
